"""Computes the rows of the table `flows` from the links of whole flows and the attempts of their jobs."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crossdock.pipeline.schemas.views import FLOWS
from crossdock.pipeline.views.link_graph import (
    Bools,
    Graph,
    Ints,
    Servers,
    distinct,
    graph,
    longest_paths,
    plain_name,
)

#: Columns of `attempts` that flows need.
ATTEMPT_COLUMNS: Final = ("server", "number", "seq", "jid", "closed_at", "outcome", "state", "run_s")

_NEVER: Final = np.iinfo(np.int64).min


class _Jobs(NamedTuple):
    """Per job, in the order of their keys."""

    run_s: npt.NDArray[np.float64]
    closed_us: Ints
    succeeded: Bools
    failed: Bools
    first_row: Ints  #: first link of the job itself; -1: others only depend on it
    jids: pa.Array


def flow_rows(links: pa.Table, attempts: Callable[[Ints], pa.Table], servers: Servers) -> pa.Table:
    """One row per flow. The result depends on the links and attempts alone, not on their order."""
    whole = graph(links, servers)
    jobs = _jobs(whole, attempts(whole.jobs), servers)
    count = len(whole.jobs)
    part = whole.parts()
    parts = distinct(part)
    flow = np.searchsorted(parts, part)
    of_job, of_batch = flow[:count], flow[count:]
    before, after = _current(whole)
    costs = np.zeros(whole.nodes)
    costs[:count] = jobs.run_s
    far, depth = longest_paths(whole.nodes, before, after, costs, count)
    n = len(parts)
    first = _first(n, of_job, np.where(jobs.first_row >= 0, np.arange(count), count))
    is_shown = first < count  # a batch without jobs is no flow
    root = np.append(jobs.first_row, -1)[np.where(is_shown, first, count)]
    deepest, critical = np.zeros(n, np.int64), np.zeros(n)
    np.maximum.at(deepest, flow, depth)
    np.maximum.at(critical, flow, far)
    closed = np.full(n, _NEVER)
    np.maximum.at(closed, of_job, jobs.closed_us)
    shown = np.flatnonzero(is_shown)
    rows = links.take(pa.array(root[shown]))
    total = np.bincount(of_job, minlength=n)
    succeeded, failed = (np.bincount(of_job[each], minlength=n) for each in (jobs.succeeded, jobs.failed))
    named_at = _first_mentions(whole)
    columns: dict[str, Any] = {
        "date": rows.column("date"),
        "server": rows.column("server"),
        "name": _names(whole, jobs, (before, after), flow, named_at, n).take(pa.array(shown)),
        "number": rows.column("number"),
        "jid": rows.column("jid"),
        "groups": _groups(whole, of_batch, named_at, shown, n),
        "jobs": total[shown],
        "links": np.bincount(flow[before], minlength=n)[shown],
        "depth": deepest[shown],
        "succeeded": succeeded[shown],
        "failed": failed[shown],
        "open": (total - succeeded - failed)[shown],
        "pushed_at": rows.column("at"),
        "closed_at": pa.array(closed[shown], mask=closed[shown] == _NEVER).cast(FLOWS.arrow.field("closed_at").type),
        "run_s": np.bincount(of_job, jobs.run_s, n)[shown],
        "critical_s": critical[shown],
    }
    made = pa.table([columns[name] for name in FLOWS.names], FLOWS.names)
    return made.cast(FLOWS.arrow)


def _jobs(whole: Graph, attempts: pa.Table, servers: Servers) -> _Jobs:
    count = len(whole.jobs)
    first_row = np.full(count, -1, np.int64)
    is_own = (whole.node >= 0) & (whole.node < count)
    own = np.flatnonzero(is_own)[::-1]  # links are in the order of their numbers: the first one is assigned last
    first_row[whole.node[own]] = own
    jid_at = first_row.copy()
    # Times are added in the order of events: another order would change the last digit.
    attempts = attempts.sort_by([("seq", "ascending"), ("server", "ascending")])
    job = np.searchsorted(whole.jobs, servers.keys(attempts))
    run_s = np.bincount(job, pc.fill_null(attempts.column("run_s"), 0.0).to_numpy(), count).astype(np.float64)
    closed = np.full(count, _NEVER)
    times = attempts.column("closed_at").cast(pa.int64())
    np.maximum.at(closed, job, pc.fill_null(times, _NEVER).to_numpy())
    last = np.full(count, -1, np.int64)
    last[job] = np.arange(len(job))
    outcome, state = attempts.column("outcome"), attempts.column("state")
    is_end = pc.and_(
        pc.is_in(outcome, pa.array(["failed", "lost"])), pc.is_in(state, pa.array(["failed", "dead", "gone"]))
    )
    succeeded, failed = (
        np.append(pc.fill_null(each, False).to_numpy(zero_copy_only=False), False)[last]
        for each in (pc.equal(outcome, "succeeded"), is_end)
    )
    jids = pa.chunked_array([*whole.rows.column("jid").chunks, *attempts.column("jid").chunks], pa.string())
    jid_at = np.where(jid_at >= 0, jid_at, np.where(last >= 0, last + whole.rows.num_rows, -1))
    known = jids.combine_chunks().take(pa.array(jid_at, mask=jid_at < 0))
    return _Jobs(run_s, closed, succeeded, failed, first_row, known)


def _current(whole: Graph) -> tuple[Ints, Ints]:
    """The edges that hold now, each once: the newest list of dependencies of each job, and those of batches."""
    before, after, row = whole.dependencies
    lists = pc.is_valid(whole.rows.column("needs")).to_numpy(zero_copy_only=False)
    newest = np.full(whole.nodes, -1, np.int64)
    rows = np.flatnonzero(lists & (whole.node >= 0))
    newest[whole.node[rows]] = rows
    holds = newest[after] == row
    start = np.concatenate([before[holds], whole.others[0]])
    end = np.concatenate([after[holds], whole.others[1]])
    both = distinct(start * whole.nodes + end)
    return both // max(whole.nodes, 1), both % max(whole.nodes, 1)


def _first(n: int, flow: Ints, rank: Ints) -> Ints:
    """The lowest rank in each flow."""
    lowest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(lowest, flow, rank)
    return lowest


def _first_mentions(whole: Graph) -> Ints:
    """The first link of each batch; the number of links for one that has none."""
    node, row = whole.mentions
    return _first(whole.nodes - whole.first_batch, node - whole.first_batch, row).clip(max=whole.rows.num_rows)


def _names(whole: Graph, jobs: _Jobs, edges: tuple[Ints, Ints], flow: Ints, named_at: Ints, n: int) -> pa.Array:
    """The outermost batch of each flow, or else its first job without dependencies. If all have some, the first."""
    count, links = len(whole.jobs), whole.rows.num_rows
    is_inner = np.zeros(whole.nodes, bool)
    is_inner[whole.parents[0]] = True
    rank = np.where(named_at < links, named_at + links * is_inner[count:], 2 * links)
    batch = _first(n, flow[count:], rank).clip(max=2 * links)
    at = np.full(2 * links + 1, -1, np.int64)
    at[rank[::-1]] = np.arange(len(rank))[::-1]
    depends = np.zeros(whole.nodes, bool)
    depends[edges[1]] = True
    is_known = pc.is_valid(jobs.jids).to_numpy(zero_copy_only=False)
    order = np.where(is_known, np.arange(count) + count * depends[:count], 2 * count)
    job = _first(n, flow[:count], order).clip(max=2 * count)
    return pc.coalesce(
        plain_name(_batch_names(whole)).take(pa.array(at[batch], mask=batch == 2 * links)),
        jobs.jids.take(pa.array(job % max(count, 1), mask=job == 2 * count)),
    )


def _batch_names(whole: Graph) -> pa.Array:
    indexes = np.concatenate([whole.opened, np.arange(len(whole.names))])
    return whole.names.take(pa.array(indexes))


def _groups(whole: Graph, flow: Ints, named_at: Ints, shown: Ints, n: int) -> pa.Array:
    """The names of each flow's batches, sorted."""
    there = np.flatnonzero(named_at < whole.rows.num_rows)
    pairs = pa.table({"flow": flow[there], "name": plain_name(_batch_names(whole).take(pa.array(there)))})
    pairs = pairs.group_by(["flow", "name"]).aggregate([]).sort_by([("flow", "ascending"), ("name", "ascending")])
    sizes = np.bincount(pairs.column("flow").to_numpy(), minlength=n)
    names = pairs.column("name").combine_chunks()
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32()), names)
    return lists.take(pa.array(shown))

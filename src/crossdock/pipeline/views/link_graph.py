"""The graph of the table `links`: jobs and batches as nodes, and what connects them as edges.

An edge leads from a job to its dependents and to its batch, and from a batch to its callbacks and its parent. All
arrays are numpy's: a date may have millions of links.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Columns of `links` that make the graph.
COLUMNS: Final = (
    "date", "server", "seq", "at", "event", "number", "jid", "group_name", "callback_of", "parent_group", "needs"
)  # fmt: skip

#: Events that begin a batch. Clients of Resqu choose names, so a name can begin again as another batch.
_OPENED: Final = ("batch-opened", "resqu-batch-opened")

#: The key of a job has its server's code above its number.
_SHIFT: Final = 48


class Servers:
    """Codes of server names, and keys of jobs."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {}

    def codes(self, names: pa.ChunkedArray) -> Ints:
        """The code of each server."""
        encoded = names.combine_chunks().dictionary_encode(null_encoding="encode")
        known = [self._codes.setdefault(name, len(self._codes)) for name in encoded.dictionary.to_pylist()]
        codes: Ints = np.array(known, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes

    def keys(self, rows: pa.Table) -> Ints:
        """The key of each row's job."""
        return keys_of(self.codes(rows.column("server")), _ints(rows.column("number")))

    def numbers(self, keys: Ints) -> Ints:
        return keys & ((1 << _SHIFT) - 1)


def distinct(values: Ints) -> Ints:
    """The values, sorted, each once. (numpy.unique hashes them, which takes several times as long for job numbers.)"""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def is_in(values: Ints, among: Ints) -> Bools:
    """Whether each value is among these, which are sorted."""
    if not len(among):
        return np.zeros(len(values), bool)
    found: Bools = among[np.searchsorted(among, values).clip(max=len(among) - 1)] == values
    return found


def keys_of(codes: Ints, numbers: Ints) -> Ints:
    return (codes << _SHIFT) | numbers


class Graph(NamedTuple):
    """Nodes are numbered: first the jobs, by key, then the batches that begin in these rows, by name and time, then the
    batches that began earlier, by name."""

    rows: pa.Table
    jobs: Ints  #: keys, ascending
    names: pa.Array  #: of batches, with the code of the server before
    opened: Ints  #: for each batch that begins in these rows, the index of its name
    node: Ints  #: of each row: its job, or the batch that it is about; -1: neither
    dependencies: tuple[Ints, Ints, Ints]  #: edges: from, to, and the row
    others: tuple[Ints, Ints]  #: edges of batches
    parents: tuple[Ints, Ints]  #: those of them from a batch to its parent
    mentions: tuple[Ints, Ints]  #: node of a batch, and the row that names it

    @property
    def nodes(self) -> int:
        return len(self.jobs) + len(self.opened) + len(self.names)

    @property
    def first_batch(self) -> int:
        return len(self.jobs)

    @property
    def first_earlier(self) -> int:
        """The first batch that began before these rows; one for each name."""
        return len(self.jobs) + len(self.opened)

    def parts(self, more: tuple[Ints, Ints] | None = None) -> Ints:
        """The connected component of each node, with all edges that ever were: a job whose dependency was removed stays
        in its flow."""
        before, after, _ = self.dependencies
        edges = [(before, after), self.others, *([more] if more else [])]
        return components(self.nodes, *(np.concatenate(each) for each in zip(*edges, strict=True)))


def graph(rows: pa.Table, servers: Servers) -> Graph:
    count = rows.num_rows
    codes, numbers = servers.codes(rows.column("server")), _ints(rows.column("number"))
    is_job = numbers > 0
    own = keys_of(codes, numbers)
    needed, needing = _dependencies(rows.column("needs"), numbers)
    needed = keys_of(codes[needing], needed)
    jobs = distinct(np.concatenate([own[is_job], needed]))
    # Each name that a row mentions, with its place: the row's own batch, the batch it is a callback of, the parent.
    columns = [_mentioned(rows.column(name), codes) for name in ("group_name", "callback_of", "parent_group")]
    encoded = pa.chunked_array([names for names, _ in columns], pa.string()).combine_chunks().dictionary_encode()
    name, row = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), np.concatenate([r for _, r in columns])
    place = np.repeat(np.arange(3), [len(r) for _, r in columns])
    order = np.empty(count, np.int64)
    order[np.argsort(_ints(rows.column("seq")), kind="stable")] = np.arange(count)
    is_opening = pc.is_in(rows.column("event"), pa.array(_OPENED)).to_numpy(zero_copy_only=False) & ~is_job
    moment = (name << 32) | order[row]
    openings = np.sort(moment[(place == 0) & is_opening[row]])
    latest = np.searchsorted(openings, moment, "right") - 1
    is_known = (latest >= 0) & (np.append(openings, -1)[latest] >> 32 == name)
    node = len(jobs) + np.where(is_known, latest, len(openings) + name)
    of = np.full((3, count), -1, np.int64)
    of[place, row] = node
    job = np.where(is_job, np.searchsorted(jobs, own), -1)
    members, callbacks = is_job & (of[0] >= 0), is_job & (of[1] >= 0)
    nested = ~is_job & (of[0] >= 0) & (of[2] >= 0)
    parents = _between(of[0][nested], of[2][nested])
    before, after, at = np.searchsorted(jobs, needed), job[needing], needing
    apart = before != after  # a job that depends on itself never runs
    return Graph(
        rows=rows,
        jobs=jobs,
        names=encoded.dictionary,
        opened=openings >> 32,
        node=np.where(is_job, job, of[0]),
        dependencies=(before[apart], after[apart], at[apart]),
        others=(
            np.concatenate([job[members], of[1][callbacks], parents[0]]),
            np.concatenate([of[0][members], job[callbacks], parents[1]]),
        ),
        parents=parents,
        mentions=(node, row),
    )


def components(nodes: int, before: Ints, after: Ints) -> Ints:
    """The smallest connected node of each node. In each round every component joins its smallest neighbour, and so on
    to the end of the chain. Of two neighbours, one joins another component in this round or the next, so there are few
    rounds, however long the chains are."""
    part = np.arange(nodes)
    while True:
        one, other = part[before], part[after]
        apart = one != other
        if not apart.any():
            return part
        before, after, one, other = before[apart], after[apart], one[apart], other[apart]
        np.minimum.at(part, np.maximum(one, other), np.minimum(one, other))
        while True:
            further = part[part]
            if np.array_equal(further, part):
                break
            part = further


def longest_paths(nodes: int, before: Ints, after: Ints, costs: npt.NDArray[np.float64], jobs: int) -> tuple[Any, Any]:
    """The longest path to each node, including itself, in costs and in jobs (the first `jobs` nodes). If only nodes on
    or behind cycles are left, the first of them goes next, and edges that lead back to it are left out."""
    by_start = np.argsort(before, kind="stable")
    targets = after[by_start].tolist()
    starts = np.searchsorted(before[by_start], np.arange(nodes + 1)).tolist()
    waiting_for = np.bincount(after, minlength=nodes).tolist()
    cost = costs.tolist()
    far, depth = [0.0] * nodes, [0] * nodes
    is_done = bytearray(nodes)
    ready = [node for node in range(nodes) if not waiting_for[node]]
    for start in range(-1, nodes):  # -1: without a cycle there is no other start
        if start >= 0:
            if is_done[start]:
                continue
            ready.append(start)
        while ready:
            node = ready.pop()
            is_done[node] = 1
            far[node] += cost[node]
            depth[node] += node < jobs
            here, steps = far[node], depth[node]
            for target in targets[starts[node] : starts[node + 1]]:
                if is_done[target]:
                    continue
                if here > far[target]:
                    far[target] = here
                if steps > depth[target]:
                    depth[target] = steps
                waiting_for[target] -= 1
                if not waiting_for[target]:
                    ready.append(target)
    return np.array(far), np.array(depth, np.int64)


def _dependencies(needs: pa.ChunkedArray, numbers: Ints) -> tuple[Ints, Ints]:
    """Numbers of jobs that are depended on, each with the row. Negative ones are relative to the row's job."""
    array = needs.combine_chunks()
    row = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
    need = _ints(pc.list_flatten(array))
    number = np.where(need < 0, numbers[row] + need, need)
    is_job = (number > 0) & (numbers[row] > 0)
    return number[is_job], row[is_job]


def _mentioned(names: pa.ChunkedArray, codes: Ints) -> tuple[pa.Array, Ints]:
    """The names in a column, with the code of the server before, and their rows."""
    rows = np.flatnonzero(pc.is_valid(names).to_numpy(zero_copy_only=False))
    there = names.combine_chunks().take(pa.array(rows)).cast(pa.string())
    return pc.binary_join_element_wise(pa.array(codes[rows]).cast(pa.string()), there, " "), rows


def plain_name(name: pa.Array) -> pa.Array:
    """Names without the code of the server."""
    return pc.replace_substring_regex(name, r"^\d+ ", "", max_replacements=1)


def _between(before: Ints, after: Ints) -> tuple[Ints, Ints]:
    apart = before != after
    return before[apart], after[apart]


def _ints(column: Any) -> Ints:
    """Integers; 0 for null."""
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)

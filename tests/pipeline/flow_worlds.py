"""Rows of links and attempts for tests of flows, random worlds of them, and a simple reference in plain Python."""

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS

FIRST = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
Row = dict[str, Any]


def link(seq: int, day: int, event: str = "pushed", **columns: Any) -> Row:
    at = FIRST + dt.timedelta(days=day, seconds=seq)
    row = (
        dict.fromkeys(LINKS.names) | {"date": at.date(), "at": at, "seq": seq, "event": event, "server": "s"} | columns
    )
    if row["number"] is not None:
        row["jid"] = f"j{row['number']}"
        jobs = [row["number"], *(_absolute(need, row["number"]) for need in row["needs"] or [])]
        row |= {"lowest": min(jobs), "highest": max(jobs)}
    return row


def attempt(seq: int, day: int, number: int, outcome: str = "succeeded", run_s: float = 1.0, **columns: Any) -> Row:
    at = FIRST + dt.timedelta(days=day, seconds=seq)
    row = {"date": at.date(), "server": "s", "seq": seq, "number": number, "jid": f"j{number}", "closed_at": at}
    return dict.fromkeys(ATTEMPTS.names) | row | {"outcome": outcome, "state": "gone", "run_s": run_s} | columns


def _absolute(need: int, number: int) -> int:
    return number + need if need < 0 else need


def add(tables: Tables, name: str, rows: Sequence[Row]) -> None:
    table = tables[name]
    table.commit(table.handle(), table.write(pa.Table.from_pylist(list(rows), schema=table.schema.arrow)))


def delete(tables: Tables, name: str, day: int) -> None:
    table, date = tables[name], (FIRST + dt.timedelta(days=day)).date()
    table.commit(table.handle(), [], replaced=table.files({date}))


def table_of(tables: Tables, name: str = "flows") -> list[Row]:
    rows: list[Row] = pa.table(tables[name].handle().to_pyarrow_table()).to_pylist()
    return sorted(rows, key=lambda row: (row["server"], row["number"] or 0, row.get("seq") or 0))


def made(folder: Path, links: Sequence[Row] = (), attempts: Sequence[Row] = ()) -> Tables:
    tables = Tables(str(folder))
    for name in ("links", "attempts", "flows"):
        tables[name].create()
    if links:
        add(tables, "links", links)
    if attempts:
        add(tables, "attempts", attempts)
    return tables


def reference(links: Iterable[Row], attempts: Iterable[Row]) -> list[Row]:
    """The same table in plain Python: one walk per flow, and paths as long as there are nodes."""
    links = sorted(links, key=lambda row: row["seq"])
    attempts = sorted(attempts, key=lambda row: row["seq"])
    opened: dict[Any, int] = {}
    ever: dict[Any, set[Any]] = {}
    batch_edges: set[Any] = set()
    needs: dict[Any, list[Any]] = {}
    first: dict[Any, Row] = {}
    mentioned: dict[Any, int] = {}

    def batch(row: Row, name: str) -> Any:
        key = ("batch", row["server"], name, opened.get((row["server"], name), 0))
        mentioned.setdefault(key, len(mentioned))
        ever.setdefault(key, set())
        return key

    def tie(one: Any, other: Any) -> None:
        ever.setdefault(one, set()).add(other)
        ever.setdefault(other, set()).add(one)

    parents = set()
    for row in links:
        if row["event"] in ("batch-opened", "resqu-batch-opened"):
            opened[row["server"], row["group_name"]] = row["seq"]
        group = row["group_name"] and batch(row, row["group_name"])
        if row["number"] is None:
            if row["parent_group"]:
                above = batch(row, row["parent_group"])
                parents.add(group)
                batch_edges.add((group, above))
                tie(group, above)
            continue
        job = ("job", row["server"], row["number"])
        ever.setdefault(job, set())
        first.setdefault(job, row)
        if group:
            batch_edges.add((job, group))
            tie(job, group)
        if row["callback_of"]:
            of = batch(row, row["callback_of"])
            batch_edges.add((of, job))
            tie(of, job)
        if row["needs"] is not None:
            needs[job] = [("job", row["server"], _absolute(need, row["number"])) for need in row["needs"]]
            for each in needs[job]:
                tie(each, job)
    edges = {(one, other) for one, other in batch_edges if one != other}
    edges |= {(each, job) for job, named in needs.items() for each in named if each != job}
    ran: dict[Any, list[Row]] = {}
    for row in attempts:
        ran.setdefault(("job", row["server"], row["number"]), []).append(row)
    rows, seen = [], set()
    for start in ever:
        if start in seen:
            continue
        flow, queue = {start}, [start]
        while queue:
            for other in ever[queue.pop()] - flow:
                flow.add(other)
                queue.append(other)
        seen |= flow
        mine = [job for job in sorted(flow) if job in first]
        if mine:
            rows.append(_row(flow, mine[0], edges, ran, first, mentioned, parents))
    return sorted(rows, key=lambda row: (row["server"], row["number"]))


def _row(
    flow: set[Any], head: Any, edges: set[Any], ran: dict[Any, list[Row]], first: dict[Any, Row], mentioned: Any,
    parents: set[Any],
) -> Row:  # fmt: skip
    jobs = sorted(node for node in flow if node[0] == "job")
    batches = sorted((node for node in flow if node[0] == "batch"), key=lambda node: (node in parents, mentioned[node]))
    own = {edge for edge in edges if edge[0] in flow}
    known = {
        job: first[job]["jid"] if job in first else ran[job][0]["jid"] for job in jobs if job in first or job in ran
    }
    roots = sorted(known, key=lambda job: (any(edge[1] == job for edge in own), job))
    cost = {node: sum(each["run_s"] for each in ran.get(node, [])) for node in flow}
    far, depth = dict(cost), {node: int(node[0] == "job") for node in flow}
    for _ in flow:
        for one, other in own:
            far[other] = max(far[other], far[one] + cost[other])
            depth[other] = max(depth[other], depth[one] + (other[0] == "job"))
    last = [ran[job][-1] for job in jobs if job in ran]
    succeeded = sum(row["outcome"] == "succeeded" for row in last)
    failed = sum(row["outcome"] in ("failed", "lost") and row["state"] in ("failed", "dead", "gone") for row in last)
    return {
        "date": first[head]["date"], "server": head[1], "name": batches[0][2] if batches else known[roots[0]],
        "number": head[2], "jid": first[head]["jid"], "groups": sorted({node[2] for node in batches}),
        "jobs": len(jobs), "links": len(own), "depth": max(depth.values()), "succeeded": succeeded, "failed": failed,
        "open": len(jobs) - succeeded - failed, "pushed_at": first[head]["at"],
        "closed_at": max((row["closed_at"] for job in jobs for row in ran.get(job, [])), default=None),
        "run_s": sum(cost.values()), "critical_s": max(far.values()),
    }  # fmt: skip


def world(seed: int, days: int = 6, a_day: int = 12, cycles: bool = False) -> tuple[list[Row], list[Row]]:
    """Links and attempts of two servers: batches, some with reused names, dependencies within and across days that are
    edited and removed later, callbacks, and jobs without links of their own. Without cycles, batches get no more jobs
    after a callback."""
    draw = random.Random(seed)
    links: list[Row] = []
    attempts: list[Row] = []
    numbers = dict.fromkeys("st", 0)
    is_open: dict[str, list[str]] = {"s": [], "t": []}
    ever: dict[str, list[str]] = {"s": [], "t": []}
    seq = 0
    for day in range(days):
        for _ in range(a_day):
            seq += 1
            server = draw.choice("sst")
            batches, number = is_open[server], numbers[server]
            what = draw.random()
            if what < 0.15:
                name = draw.choice(["nightly", f"b{seq}"])
                parent = draw.choice(batches) if batches and draw.random() < 0.4 else None
                event = "resqu-batch-opened" if name == "nightly" else "batch-opened"
                if parent != name:
                    links.append(link(seq, day, event, server=server, group_name=name, parent_group=parent))
                    batches.append(name)
                    ever[server].append(name)
            elif what < 0.25 and ever[server]:
                links.append(link(seq, day, "batch-committed", server=server, group_name=draw.choice(ever[server])))
            elif what < 0.35 and number > 2:
                job, other = draw.randint(1, number), draw.randint(1, number)
                needs = [other] if other < job and draw.random() < 0.6 else []
                links.append(link(seq, day, "dependencies-edited", server=server, number=job, needs=needs))
            elif what < 0.6 and number:
                job = draw.randint(max(1, number - 8), number)
                outcome = draw.choice(["succeeded", "succeeded", "failed", "lost", "returned"])
                state = draw.choice(["gone", "ready", "dead"])
                attempts.append(attempt(seq, day, job, outcome, draw.randint(1, 64) / 8, server=server, state=state))
            else:
                numbers[server] += 1
                _push(draw, links, seq, day, server, numbers[server], batches)
                if links and links[-1]["callback_of"] and not cycles:
                    batches.clear()
    return links, attempts


def _push(
    draw: random.Random, links: list[Row], seq: int, day: int, server: str, number: int, batches: list[str]
) -> None:
    columns: Row = {}
    if number > 1 and draw.random() < 0.35:
        columns["needs"] = draw.choice([[-1], [draw.randint(1, number - 1)], [-1, draw.randint(1, number - 1)]])
    elif batches and draw.random() < 0.6:
        columns["callback_of" if draw.random() < 0.2 else "group_name"] = draw.choice(batches)
    if columns:
        links.append(link(seq, day, server=server, number=number, **columns))


def slices(draw: random.Random, links: list[Row], attempts: list[Row]) -> Iterator[tuple[list[Row], list[Row]]]:
    end = max(row["seq"] for row in [*links, *attempts])
    cuts = sorted({0, end, *(draw.randint(1, end) for _ in range(draw.randint(1, 9)))})
    for low, high in pairwise(cuts):
        yield tuple([row for row in rows if low < row["seq"] <= high] for rows in (links, attempts))  # type: ignore[misc]

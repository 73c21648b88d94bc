"""Generates a lake: jobs of several queues and kinds over days, each pushed, leased and settled, some with retries.

The segments have the format of the lake's writer, but are filled by column: millions of events in seconds.
"""

import datetime as dt
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from crossdock.lake import checkpoints
from crossdock.lake.commits import Commits
from crossdock.lake.drafts import Draft
from crossdock.lake.schema import EVENTS, SEQ_SHIFT
from crossdock.lake.store import Store, store_of
from crossdock.lake.table import AT_US, LAST, Lake
from crossdock.lake.table import FIRST as FIRST_ENTRY

FIRST: Final = dt.date(2026, 11, 1)
A_DAY: Final = 1_250_000  #: events
SEGMENT: Final = 62_500

_KINDS: Final = 4
_WORKERS: Final = 200
_FAILS: Final = 0.12
_EPOCH: Final = dt.date(1970, 1, 1)

#: Commits between two checkpoints.
_CHECKPOINT: Final = 100


def generate(
    lake: Path, events: int, seed: int = 1, queues: int = 20, segment: int = SEGMENT, days: int | None = None
) -> Lake:
    """Write a lake of about `events` events, one segment per journal entry and commit."""
    random = np.random.default_rng(seed)
    days = days or max(1, round(events / A_DAY))
    store = store_of(lake)
    commits = Commits.open_or_create(store, "bench")
    entry = number = 0
    for day in range(days):
        date = FIRST + dt.timedelta(days=day)
        table = _day(random, date, events // days, number, queues)
        number += events // days
        for first in range(0, table.num_rows, segment):
            entry += 1
            rows = table.slice(first, segment)
            seq = pa.array(np.arange(rows.num_rows) + (entry << SEQ_SHIFT))
            _segment(store, commits, date, entry, rows.set_column(0, EVENTS.field(0), seq))
            if entry % _CHECKPOINT == 0:
                # As the maintenance process of a real lake does. Without it each commit is slower than the last.
                commits.checkpoint()
                checkpoints.record(store, store.names())
    return commits.lake


def grow(lake: Path, events: int) -> int:
    """Add a segment to the last day. Returns the lake's version."""
    store = store_of(lake)
    commits = Commits.open_or_create(store, "bench")
    before = commits.lake
    date = dt.date.fromisoformat(max(file.date for file in before.files()))
    number = max(1 << 40, before.last << 20)
    table = _day(np.random.default_rng(before.last), date, max(events, 10), number, 20).slice(0, events)
    seq = pa.array(np.arange(table.num_rows) + ((before.last + 1) << SEQ_SHIFT))
    _segment(store, commits, date, before.last + 1, table.set_column(0, EVENTS.field(0), seq))
    return commits.lake.version


def _day(random: np.random.Generator, date: dt.date, events: int, number: int, queues: int) -> pa.Table:
    """For each job a push, its first lease and the outcome. Jobs that fail have a second lease and outcome."""
    jobs = round(events / (3 + 2 * _FAILS))
    start = (date - _EPOCH).days * 86_400.0
    pushed = np.sort(random.uniform(start, start + 80_000, jobs))
    fails = random.random(jobs) < _FAILS
    queue, kind = random.integers(0, queues, jobs), random.integers(0, _KINDS, jobs)
    wait, run = random.lognormal(0, 2, jobs).clip(0, 1_500), random.lognormal(-1, 1.5, jobs).clip(0, 1_500)
    again_wait, again_run = random.exponential(20, jobs).clip(0, 900), random.lognormal(-1, 1.5, jobs).clip(0, 1_500)
    all_jobs, failed = np.arange(jobs), np.flatnonzero(fails)
    leased, closed = pushed + wait, pushed + wait + run
    second = (closed + again_wait)[failed]
    parts = [
        ("pushed", all_jobs, pushed, 0, None, None, None),
        ("leased", all_jobs, leased, 1, wait, None, None),
        ("succeeded", np.flatnonzero(~fails), closed[~fails], 1, wait[~fails], run[~fails], leased[~fails]),
        ("failed", failed, closed[failed], 1, wait[failed], run[failed], leased[failed]),
        ("leased", failed, second, 2, again_wait[failed], None, None),
        ("succeeded", failed, second + again_run[failed], 2, again_wait[failed], again_run[failed], second),
    ]
    common: dict[str, Any] = {
        "number": number, "queue": queue, "kind": kind, "day": (date - _EPOCH).days, "pushed": pushed, "queues": queues
    }  # fmt: skip
    return pa.concat_tables([_part(random, *part, **common) for part in parts]).sort_by("at")


def _part(
    random: np.random.Generator, event: str, which: Any, at: Any, attempt: int, wait: Any, run: Any, leased: Any,
    *, number: int, queue: Any, kind: Any, day: int, pushed: Any, queues: int,
) -> pa.Table:  # fmt: skip
    n = len(which)
    closes = run is not None
    failed = event == "failed"
    names = pa.DictionaryArray.from_arrays(pa.array(queue[which]), [f"queue-{each:02d}" for each in range(queues)])
    given: dict[str, Any] = {
        "flush_epoch": np.zeros(n, np.int64),
        "at": at,
        "event": _same(event, n),
        "state": _same({"pushed": "ready", "leased": "leased", "failed": "retrying"}.get(event, "gone"), n),
        "jid": pa.array(which + number).cast(pa.string()),
        "number": which + number,
        "queue": names.cast(pa.string()),
        "kind": _named("kind", kind[which], _KINDS),
        "origin": _same("faktory", n),
        "via": _same("faktory", n),
        "attempt": np.full(n, attempt),
        "priority": np.zeros(n),
        "size": np.full(n, 64),
        "seq": np.zeros(n, np.int64),
        "server": _same("bench", n),
    }
    if event != "pushed":
        given |= {"worker": _named("worker", random.integers(0, _WORKERS, n), _WORKERS), "token": which + number}
        given |= {"lease_via": given["via"], "wait_s": wait}
    books = event == "leased" or event == "succeeded" or failed
    if books:
        given |= {"booked_queue": given["queue"], "booked_day": np.full(n, day)}
    if event == "leased":
        given["booked_wait"] = _same(True, n)
    if closes:
        given["pushed_at"] = pushed[which]
        given |= {"outcome": given["event"], "run_s": run, "leased_at": leased, "beats": np.zeros(n, np.int64)}
    if event == "succeeded":
        given["booked_run"] = _same(True, n)
    if failed:
        groups = _named("Error", random.integers(0, 12, n), 12)
        given |= {"booked_failures": np.ones(n, np.int64), "error_group": groups, "error_message": groups}
        given["lost"] = _same(False, n)
    columns = [
        pa.array(given[field.name], field.type) if field.name in given else pa.nulls(n, field.type) for field in EVENTS
    ]
    return pa.Table.from_arrays(columns, names=EVENTS.names)


def _same(value: Any, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), n)


def _named(word: str, which: Any, of: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(which), [f"{word}-{each:03d}" for each in range(of)]).cast(
        pa.string()
    )


def _segment(store: Store, commits: Commits, date: dt.date, entry: int, table: pa.Table) -> None:
    lake = commits.lake
    path = Path(lake.location).with_suffix(".draft")
    draft = Draft(path, date.isoformat())
    draft.add(table.cast(EVENTS))
    drawn = draft.finish(lake.id, lake.server, entry, entry)
    store.put(drawn.draft, drawn.segment.path)
    commits.commit([drawn.segment], {FIRST_ENTRY: 1, LAST: entry, AT_US: int(table["at"][-1].as_py() * 1e6)})

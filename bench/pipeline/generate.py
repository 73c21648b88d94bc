"""A made-up lake: jobs of some queues and kinds over days, each pushed, leased and settled, some more than once.

The segments are what the lake's own writer would leave, but filled by the column: millions of events in seconds.
"""

import datetime as dt
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crossdock.lake import manifest
from crossdock.lake.drafts import DATE_KEY, LAKE_KEY, RANGE_KEY, VERSION_KEY
from crossdock.lake.schema import EVENTS, LAKE_VERSION, SEQ_SHIFT

FIRST: Final = dt.date(2026, 11, 1)
A_DAY: Final = 1_250_000  #: events
SEGMENT: Final = 62_500

_QUEUES: Final = 20
_KINDS: Final = 4
_WORKERS: Final = 200
_FAILS: Final = 0.12
_EPOCH: Final = dt.date(1970, 1, 1)
_NAME: Final = "bench"


def generate(lake: Path, events: int, seed: int = 1) -> list[manifest.File]:
    """Its segments, one a batch, about as many events as asked for; days follow from it. They count once published."""
    random = np.random.default_rng(seed)
    days = max(1, round(events / A_DAY))
    files: list[manifest.File] = []
    batch, number = 0, 0
    for day in range(days):
        table = _day(random, FIRST + dt.timedelta(days=day), events // days, number)
        number += events // days
        for first in range(0, table.num_rows, SEGMENT):
            batch += 1
            files.append(_segment(lake, FIRST + dt.timedelta(days=day), batch, table.slice(first, SEGMENT)))
    return files


def publish(lake: Path, files: list[manifest.File]) -> int:
    """Make the first of its segments count: these; how many events they hold."""
    done = manifest.Done(
        manifest.FORMAT, _NAME, 1, len(files), 0, newest=files[-1:], dates=manifest.added({}, files, {})
    )
    manifest.write(lake, done)
    return done.rows


def _day(random: np.random.Generator, date: dt.date, events: int, number: int) -> pa.Table:
    """Of each job a push and its first lease and outcome; of those that fail one more of both."""
    jobs = round(events / (3 + 2 * _FAILS))
    start = (date - _EPOCH).days * 86_400.0
    pushed = np.sort(random.uniform(start, start + 80_000, jobs))
    fails = random.random(jobs) < _FAILS
    queue, kind = random.integers(0, _QUEUES, jobs), random.integers(0, _KINDS, jobs)
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
    table = pa.concat_tables(
        [_part(random, *part, number=number, queue=queue, kind=kind, day=(date - _EPOCH).days) for part in parts]
    ).sort_by("at")
    seq = pa.array(np.arange(table.num_rows) + ((number + 1) << SEQ_SHIFT))
    return table.set_column(0, EVENTS.field(0), seq)


def _part(
    random: np.random.Generator, event: str, which: Any, at: Any, attempt: int, wait: Any, run: Any, leased: Any,
    *, number: int, queue: Any, kind: Any, day: int,
) -> pa.Table:  # fmt: skip
    n = len(which)
    closes = run is not None
    failed = event == "failed"
    queues = pa.DictionaryArray.from_arrays(pa.array(queue[which]), [f"queue-{each:02d}" for each in range(_QUEUES)])
    given: dict[str, Any] = {
        "flush_epoch": np.zeros(n, np.int64),
        "at": at,
        "event": _same(event, n),
        "state": _same({"pushed": "ready", "leased": "leased", "failed": "retrying"}.get(event, "gone"), n),
        "jid": pa.array(which + number).cast(pa.string()),
        "number": which + number,
        "queue": queues.cast(pa.string()),
        "kind": _named("kind", kind[which], _KINDS),
        "origin": _same("faktory", n),
        "via": _same("faktory", n),
        "attempt": np.full(n, attempt),
        "priority": np.zeros(n),
        "size": np.full(n, 64),
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


def _segment(lake: Path, date: dt.date, batch: int, table: pa.Table) -> manifest.File:
    path = manifest.segment_path(date, batch, batch)
    (lake / path).parent.mkdir(parents=True, exist_ok=True)
    said = {
        VERSION_KEY: str(LAKE_VERSION),
        LAKE_KEY: _NAME,
        RANGE_KEY: f"{batch}-{batch}",
        DATE_KEY: date.isoformat(),
    }
    with pq.ParquetWriter(lake / path, EVENTS, compression="zstd", store_schema=False) as writer:
        writer.write_table(table.cast(EVENTS))
        writer.add_key_value_metadata(said)
    return manifest.File(path, table.num_rows, (lake / path).stat().st_size)

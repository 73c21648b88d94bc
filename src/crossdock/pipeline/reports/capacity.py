"""Report `capacity`: the workers that each queue needs in its busiest hour, for a given wait."""

import datetime as dt
from typing import Any

import msgspec

from crossdock.pipeline.queueing import mean_wait, workers_needed
from crossdock.pipeline.reports.tables import Reader, of_queue


class Needs(msgspec.Struct):
    """The sums of all servers; the peak and the run times are those of the server with the largest load."""

    queue: str
    peak_hour: dt.datetime
    arrival_rate: float  #: jobs per second in that hour
    attempts_per_job: float
    run_mean: float | None  #: seconds, of all attempts of that day
    run_scv: float  #: variance / mean² of the runs
    load: float  #: busy workers on average
    target_wait_s: float
    needed: int | None  #: workers, one job at a time each
    wait_s: float | None  #: mean wait with as many workers
    seen: int  #: workers that ended an attempt of this queue in these days


class Capacity(msgspec.Struct):
    days: list[dt.date]
    arrival_scv: float
    total: int  #: number of queues
    needed: int  #: workers of all queues, if none is shared
    load: float  #: of all queues, if all had their peaks in the same hour
    queues: list[Needs]  #: with the largest load


def capacity(
    reader: Reader, top: int, queue: str | None = None, *, target_wait_s: float | None = None, arrival_scv: float = 1.0
) -> Capacity:
    """Without `target_wait_s` each queue has the target that the table was made with."""
    here = of_queue(queue)
    query = """
    WITH ranked AS (
        SELECT *, row_number() OVER (
            PARTITION BY server, queue ORDER BY load DESC NULLS LAST, arrival_rate DESC, date DESC) AS place
        FROM capacity WHERE {here}
    )
    SELECT * FROM ranked WHERE place = 1
    """
    seen = _seen(reader, here)
    found: dict[str, Needs] = {}
    for row in reader.rows("capacity", query, here):
        mine = _needs(row, row["target_wait_s"] if target_wait_s is None else target_wait_s, arrival_scv)
        mine.seen = seen.get(mine.queue, 0)
        known = found.get(mine.queue)
        found[mine.queue] = mine if known is None else _both(known, mine)
    ordered = sorted(found.values(), key=lambda each: (-each.load, each.queue))
    return Capacity(
        days=reader.seen_days,
        arrival_scv=arrival_scv,
        total=len(ordered),
        needed=sum(each.needed or 0 for each in ordered),
        load=sum(each.load for each in ordered),
        queues=ordered[:top],
    )


def _needs(row: dict[str, Any], target_wait_s: float, arrival_scv: float) -> Needs:
    rate, mean, scv = row["arrival_rate"] * row["attempts_per_job"], row["run_mean"], row["run_scv"]
    needed = wait = None
    if mean is not None and rate > 0:
        needed = workers_needed(target_wait_s, rate, mean, scv, arrival_scv)
        wait = mean_wait(needed, rate, mean, scv, arrival_scv)
    return Needs(
        queue=row["queue"],
        peak_hour=row["peak_hour"],
        arrival_rate=row["arrival_rate"],
        attempts_per_job=row["attempts_per_job"],
        run_mean=mean,
        run_scv=scv,
        load=row["load"] or 0.0,
        target_wait_s=target_wait_s,
        needed=needed,
        wait_s=wait,
        seen=0,
    )


def _both(one: Needs, other: Needs) -> Needs:
    larger = one if one.load >= other.load else other
    waits = [each.wait_s for each in (one, other) if each.wait_s is not None]
    return msgspec.structs.replace(
        larger,
        arrival_rate=one.arrival_rate + other.arrival_rate,
        load=one.load + other.load,
        needed=None if one.needed is None and other.needed is None else (one.needed or 0) + (other.needed or 0),
        wait_s=max(waits, default=None),
    )


def _seen(reader: Reader, here: str) -> dict[str, int]:
    query = """
    SELECT queue, count(DISTINCT coalesce(server, '') || ' ' || coalesce(protocol_out, '') || ' ' || worker) AS n
    FROM attempts WHERE {here} AND worker IS NOT NULL GROUP BY queue
    """
    return {row["queue"]: row["n"] for row in reader.rows("attempts", query, here)}

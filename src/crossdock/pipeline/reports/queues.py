"""Report `queue` for all queues: arrivals, outcomes, durations, and when each queue will be empty."""

import datetime as dt

import msgspec

from crossdock.pipeline.reports.durations import Times, durations
from crossdock.pipeline.reports.outcomes import Outcomes, outcomes
from crossdock.pipeline.reports.outlook import Outlook, outlooks
from crossdock.pipeline.reports.tables import Reader


class QueueRow(msgspec.Struct):
    queue: str
    arrived: int
    departed: int
    rate: float  #: jobs done per second of the observed time
    outcomes: Outcomes
    times: Times
    outlook: Outlook | None
    arrived_by_day: list[int]
    done_by_day: list[int]
    failed_by_day: list[int]


class Queues(msgspec.Struct):
    days: list[dt.date]  #: with events
    observed_s: float  #: seconds from the first to the last event
    total: int  #: number of queues
    queues: list[QueueRow]  #: queues with the most jobs done
    whole: Outcomes  #: of all queues


def queues(reader: Reader, top: int) -> Queues:
    days = reader.seen_days
    came: dict[str, dict[dt.date, tuple[int, int]]] = {}
    query = (
        "SELECT queue, date, sum(arrived) AS arrived, sum(departed) AS departed FROM hourly WHERE {here} GROUP BY 1, 2"
    )
    for row in reader.rows("hourly", query):
        came.setdefault(row["queue"], {})[row["date"]] = (row["arrived"], row["departed"])
    ended = {queue: each for (queue,), each in outcomes(reader, ("queue",)).items() if queue is not None}
    by_day: dict[str, dict[dt.date, Outcomes]] = {}
    for (queue, day), each in outcomes(reader, ("queue", "date")).items():
        by_day.setdefault(queue, {})[day] = each
    names = sorted({*ended, *came}, key=lambda name: (-ended.get(name, Outcomes()).succeeded, name))
    times, ahead = durations(reader, ("queue",)), outlooks(reader)
    found = []
    for name in names[:top]:
        mine, moves = by_day.get(name, {}), came.get(name, {})
        daily = [mine.get(day, Outcomes()) for day in days]
        whole = ended.get(name, Outcomes())
        found.append(
            QueueRow(
                queue=name,
                arrived=sum(arrived for arrived, _ in moves.values()),
                departed=sum(departed for _, departed in moves.values()),
                rate=whole.succeeded / reader.observed_s,
                outcomes=whole,
                times=times.get((name,), Times()),
                outlook=ahead.get(name),
                arrived_by_day=[moves.get(day, (0, 0))[0] for day in days],
                done_by_day=[each.succeeded for each in daily],
                failed_by_day=[each.failed_attempts for each in daily],
            )
        )
    whole = outcomes(reader, ()).get((), Outcomes())
    return Queues(days, reader.observed_s, len(names), found, whole)

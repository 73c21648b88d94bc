"""Report `cost`: what the run time of each queue costs, and how much of it was for failed attempts."""

import datetime as dt

import msgspec

from crossdock.pipeline.reports.outcomes import Outcomes, outcomes
from crossdock.pipeline.reports.tables import Reader, of_queue


class QueueCost(msgspec.Struct):
    queue: str
    busy_s: float
    wasted_s: float  #: of failed attempts
    cost: float
    wasted: float
    done: int  #: jobs that succeeded
    per_1000: float | None  #: cost of 1,000 jobs done
    by_day: list[float]


class Cost(msgspec.Struct):
    days: list[dt.date]
    price: float  #: per worker hour
    currency: str
    total: int  #: number of queues
    whole: QueueCost  #: of all queues
    queues: list[QueueCost]  #: the most expensive


def cost(reader: Reader, top: int, queue: str | None = None, *, price: float, currency: str = "") -> Cost:
    here, days = of_queue(queue), reader.seen_days
    by_day: dict[str, dict[dt.date, float]] = {}
    for (name, day), each in outcomes(reader, ("queue", "date"), here).items():
        by_day.setdefault(name or "", {})[day] = each.busy_s * price / 3_600
    found = [
        _cost(name or "", each, price, [by_day.get(name or "", {}).get(day, 0.0) for day in days])
        for (name,), each in outcomes(reader, ("queue",), here).items()
        if each.attempts
    ]
    found.sort(key=lambda each: (-each.cost, each.queue))
    whole = outcomes(reader, (), here).get((), Outcomes())
    sums = [sum(each.get(day, 0.0) for each in by_day.values()) for day in days]
    return Cost(days, price, currency, len(found), _cost("", whole, price, sums), found[:top])


def _cost(queue: str, ended: Outcomes, price: float, by_day: list[float]) -> QueueCost:
    busy = ended.busy_s * price / 3_600
    return QueueCost(
        queue=queue,
        busy_s=ended.busy_s,
        wasted_s=ended.wasted_s,
        cost=busy,
        wasted=ended.wasted_s * price / 3_600,
        done=ended.succeeded,
        per_1000=1_000 * busy / ended.succeeded if ended.succeeded else None,
        by_day=by_day,
    )

"""Report `failures`: the groups of errors, since when, how often, where it is going, and examples."""

import datetime as dt
from typing import Any, Final

import msgspec
import pyarrow.compute as pc

from crossdock.pipeline.reports.tables import Reader

_EXAMPLES: Final = 5


class Example(msgspec.Struct):
    jid: str
    at: dt.datetime
    message: str


class Group(msgspec.Struct):
    group: str  #: "": its workers named none
    queue: str
    n: int
    jobs: int  #: that had it, each counted once a day
    first: dt.datetime
    last: dt.datetime
    by_day: list[int]
    examples: list[Example]  #: newest day first


class Failures(msgspec.Struct):
    days: list[dt.date]
    total: int  #: groups there are
    n: int  #: failures of all of them
    by_day: list[int]
    groups: list[Group]  #: the largest


def failures(reader: Reader, top: int, queue: str = "") -> Failures:
    here = pc.field("queue") == queue if queue else None
    days = reader.days.all()
    sums = reader.sums(
        "failures", ["queue", "error_group"], {"n": "sum", "jobs": "sum", "first": "min", "last": "max"}, here
    )
    largest = sorted(sums, key=lambda row: (-row["n"], row["queue"], row["error_group"]))[:top]
    daily = {row["date"]: row["n"] for row in reader.sums("failures", ["date"], {"n": "sum"}, here)}
    shown = {(row["queue"], row["error_group"]): row for row in largest}
    by_day, examples = _details(reader, set(shown))
    groups = [
        Group(
            row["error_group"],
            row["queue"],
            row["n"],
            row["jobs"],
            row["first"],
            row["last"],
            [by_day[key].get(day, 0) for day in days],
            examples[key],
        )
        for key, row in shown.items()
    ]
    return Failures(days, len(sums), sum(daily.values()), [daily.get(day, 0) for day in days], groups)


_Key = tuple[str, str]


def _details(reader: Reader, keys: set[_Key]) -> tuple[dict[_Key, dict[dt.date, int]], dict[_Key, list[Example]]]:
    by_day: dict[_Key, dict[dt.date, int]] = {key: {} for key in keys}
    examples: dict[_Key, list[tuple[dt.date, Example]]] = {key: [] for key in keys}
    named = pc.field("error_group").isin(sorted({group for _, group in keys}))
    rows = reader.rows("failures", ("date", "queue", "error_group", "n", "examples"), named) if keys else ()
    for row in rows:
        key = (row["queue"], row["error_group"])
        if key in keys:
            days = by_day[key]
            days[row["date"]] = days.get(row["date"], 0) + row["n"]
            both = examples[key] + [(row["date"], Example(**each)) for each in row["examples"] or ()]
            both.sort(key=_newest_day_first)
            examples[key] = both[:_EXAMPLES]
    return by_day, {key: [each for _, each in some] for key, some in examples.items()}


def _newest_day_first(each: tuple[dt.date, Example]) -> Any:
    return -each[0].toordinal(), each[1].at

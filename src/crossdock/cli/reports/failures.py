"""The page of report `failures`."""

import datetime as dt

from crossdock.cli.reports.page import Cell, Page, Plot, Section, Table, Trend
from crossdock.cli.reports.queues import BARS, more
from crossdock.cli.show import number
from crossdock.pipeline.reports.failures import Failures


def page(told: Failures, facts: list[str]) -> Page:
    groups = told.groups
    few = groups[:BARS]
    listed = Section(
        "Groups of errors",
        Table(
            ("GROUP", "QUEUE", ">FAILURES", ">JOBS", "FIRST", "LAST", "BY DAY"),
            [
                (_named(group.group), group.queue, number(group.n), number(group.jobs), _minute(group.first),
                 _minute(group.last), Trend(group.by_day))
                for group in groups
            ],
        ),
        "; ".join(filter(None, (
            more(len(groups), told.total, "group", "failures"),
            "the group is what the worker called it, '' if it named none; a job counts once a day",
        ))),
        [
            Plot("columns", "Failures", "failures", [f"{day:%m-%d}" for day in told.days], {"failures": told.by_day}),
            Plot("bars", "Largest groups", "failures", [f"{_named(group.group)} in {group.queue}" for group in few],
                 {"failures": [group.n for group in few]}),
        ] if groups else (),
    )  # fmt: skip
    seen: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for group in groups:
        for each in group.examples:
            row = (_named(group.group), group.queue, _minute(each.at), each.jid, each.message)
            seen.setdefault((group.queue, group.group, each.message), row)
    examples = Section(
        "Examples",
        Table(
            ("GROUP", "QUEUE", "AT", "JID", "MESSAGE"),
            list(seen.values()),
        ),
        "different messages of the first jobs of each group on its newest days; crossdock job JID tells all of a job "
        "that is still there",
    )
    return Page("Failures", facts, [listed, examples])


def _named(group: str) -> str:
    return group or "''"


def _minute(at: dt.datetime) -> str:
    return f"{at:%m-%d %H:%M}"

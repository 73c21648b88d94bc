"""Schedules: intervals, cron lines, and what the server receives."""

import pytest

from crossdock.app.app import App
from crossdock.app.errors import BadTask
from crossdock.client.jobs import Schedule


def test_schedules_as_the_server_receives_them() -> None:
    app = App()

    @app.every("5 minutes")
    @app.task(queue="tidy")
    def tidy() -> None: ...

    @app.cron("0 3 * * *", zone="Europe/Berlin")
    async def nightly() -> None: ...

    @app.task
    def report(month: int) -> None: ...

    app.cron("0 0 1 * *", name="report-7")(report.options(queue="slow").job(7))
    assert set(app.tasks) == {"tidy", "nightly", "report"}
    assert app.tasks["nightly"].is_async
    first, second, third = app.schedules
    assert (first.name, first.every_s, first.cron, first.job.kind, first.job.queue) == (
        "tidy",
        300.0,
        None,
        "tidy",
        "tidy",
    )
    assert (second.name, second.cron, second.zone, second.every_s) == ("nightly", "0 3 * * *", "Europe/Berlin", None)
    assert (third.name, third.zone, third.job.kind, third.job.queue, bytes(third.job.args)) == (
        "report-7",
        None,
        "report",
        "slow",
        b"[7]",
    )
    assert [_same(each) for each in app.schedules] == [_same(each) for each in (first, second, third)]


def test_the_digest_changes_with_schedules_and_rates() -> None:
    def app(every: str, rate: str) -> App:
        app = App()
        app.every(every)(app.task(name="task", rate=rate)(lambda: None))
        return app

    digests = [app(*each).sync_digest for each in (("1m", "1/s"), ("1m", "1/s"), ("2m", "1/s"), ("1m", "2/s"))]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def _same(schedule: Schedule) -> tuple[str, str]:
    return schedule.name, schedule.job.jid


@pytest.mark.parametrize(
    ("line", "zone", "text"),
    [
        ("0 3 * *", None, "cron: '0 3 * *' has 4 fields; write minute, hour, day, month and weekday"),
        ("0 3 * * * *", None, "cron: '0 3 * * * *' has 6 fields"),
        ("0 30 * * *", None, "cron: '0 30 * * *' is not valid: Bad hour"),
        ("0 3 * * *", "Berlin", "cron: there is no time zone 'Berlin'; write one such as Europe/Berlin"),
        ("0 3 * * *", "../etc", "cron: there is no time zone '../etc'"),
    ],
)
def test_a_wrong_cron_line_is_explained(line: str, zone: str | None, text: str) -> None:
    with pytest.raises(BadTask) as caught:
        App().cron(line, zone=zone)
    assert str(caught.value).startswith(text)


def test_a_wrong_interval_is_explained() -> None:
    with pytest.raises(BadTask, match=r"^every: 'soon' is not a duration"):
        App().every("soon")
    with pytest.raises(BadTask, match=r"^every: 0.5 is too short; the shortest interval is one second$"):
        App().every(0.5)


def test_a_schedule_needs_a_name_of_its_own_and_arguments() -> None:
    app = App()

    @app.task
    def report(month: int) -> None: ...

    with pytest.raises(BadTask, match=r'^report: argument "month" is missing; schedule the task with its arguments'):
        app.every("1h")(report)
    app.every("1h")(report.job(7))
    with pytest.raises(BadTask, match=r'there is a schedule "report" already; pass another name=…'):
        app.every("2h")(report.job(8))
    for job in (report.options(in_="1m").job(1), report.options(depends_on=["job-00001"]).job(1)):
        with pytest.raises(BadTask, match=r"^report: a scheduled job has no time of its own and no dependencies$"):
            app.every("2h", name="other")(job)

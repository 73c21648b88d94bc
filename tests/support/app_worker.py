"""A worker of one thread for tests of tasks: it fetches, executes and settles through a real server."""

from collections.abc import Callable, Sequence
from functools import partial

from crossdock.app.app import App
from crossdock.app.context import JobContext
from crossdock.app.execute import Ack, Failed, Settlement, Snoozed, execute
from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob

LEASE_S = 60.0


def work_one(app: App, queues: Sequence[str] = ("default",), *, wait_s: float = 10.0) -> FetchedJob:
    """Execute the next job of these queues and return it."""
    (job,) = app.client.fetch(queues, 1, wait_s, LEASE_S)
    report(app.client, job, execute(app, job, JobContext(job, report=_reporter(app.client, job))))
    return job


def work_off(app: App, queues: Sequence[str] = ("default",)) -> list[FetchedJob]:
    """Execute all jobs of these queues that are ready, and those that they push."""
    done: list[FetchedJob] = []
    while jobs := app.client.fetch(queues, 10, 0, LEASE_S):
        for job in jobs:
            report(app.client, job, execute(app, job, JobContext(job, report=_reporter(app.client, job))))
        done += jobs
    return done


def _reporter(client: Client, job: FetchedJob) -> Callable[[int, str], None]:
    return partial(client.set_progress, job.jid)


def report(client: Client, job: FetchedJob, settled: Settlement) -> None:
    if settled.push:
        client.push_many(settled.push)
    match settled:
        case Ack():
            assert client.ack([(job.jid, settled.result)]) == {}
        case Failed():
            assert client.fail(
                job.jid,
                settled.type,
                settled.message,
                settled.backtrace,
                final=settled.final,
                delay_s=settled.delay_s,
            )
        case Snoozed():
            assert client.snooze(job.jid, settled.delay_s, settled.reason)

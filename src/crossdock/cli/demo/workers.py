"""The demo's workers: they succeed, fail with several errors, report progress, and sometimes lose a job."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, NamedTuple, TypeVar

from crossdock.cli.demo.clients import Connect, Threads
from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.workq import WorkqClient

C = TypeVar("C")

#: Seconds that a worker waits for a job. It sees the end of the demo after that.
_TAKE_S: Final = 1.0

#: The group and the message of errors, by kind of job. Numbers vary, as in real messages.
_ERRORS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "Charge": (
        ("CardDeclined", "card ending in {n} was declined"),
        ("Timeout", "payment gateway did not answer within {n} ms"),
    ),
    "Refund": (("LedgerMismatch", "refund {n} is larger than its charge"),),
    "Welcome": (("Timeout", "smtp.example.com did not answer within {n} ms"),),
    "SyncStock": (("RateLimited", "warehouse API allows the next call in {n} s"),),
    "Encode": (("OutOfMemory", "encoder needed {n} MiB"), ("BadFrame", "frame {n} cannot be decoded")),
    "Publish": (("Forbidden", "CDN refused token {n}"),),
}
_OTHER_ERRORS: Final = (("Error", "unexpected status {n}"),)

#: The share of attempts that fail, by kind.
_FAILURES: Final = {"Charge": 0.3, "Refund": 1.0, "Welcome": 0.06, "SyncStock": 0.15, "Encode": 0.25, "Publish": 0.1}
_OTHER_FAILURES: Final = 0.04


class Failure(NamedTuple):
    group: str
    message: str


class Workers:
    def __init__(self, threads: Threads, connect: Connect, seed: int) -> None:
        self._threads = threads
        self._connect = connect
        self._seed = seed

    def start(self) -> None:
        for number in (1, 2):
            self._faktory(f"shop-{number}", ["payments", "mail", "sync", "imports", "chores"], self._quick)
        for number in (1, 2):
            self._faktory(f"video-{number}", ["video"], self._transcode)
        for number in (1, 2, 3):
            random = Random(f"{self._seed} qless {number}")
            connect = partial(self._connect.qless, f"render-{number}.example.com")
            self._threads.add(connect, self._with(random, self._render))
        self._threads.add(self._connect.workq, self._with(Random(f"{self._seed} workq"), self._resize))
        self._threads.add(self._connect.masenko, self._with(Random(f"{self._seed} masenko"), self._index))

    def _with(self, random: Random, step: Callable[[C, Random], None]) -> Callable[[C], None]:
        return lambda client: step(client, random)

    def _faktory(self, name: str, queues: list[str], work: Callable[[Client, FetchedJob, Random], None]) -> None:
        random = Random(f"{self._seed} {name}")

        def step(client: Client) -> None:
            state = client.beat()
            if state:  # an operator has asked for it on the dashboard
                self._threads.stop.wait(_TAKE_S)
                return
            for job in client.fetch(queues, 1, _TAKE_S):
                work(client, job, random)

        self._threads.add(lambda: self._connect.faktory(name, f"{name}.example.com", ("demo", "python")), step)

    def _pause(self, seconds: float) -> bool:
        """Work for that long. False: the demo stops, and the job is left to its lease."""
        return not self._threads.stop.wait(seconds)

    def _quick(self, client: Client, job: FetchedJob, random: Random) -> None:
        if not self._pause(random.uniform(0.05, 0.6)):
            return
        error = failure(job.kind, random)
        if error is None:
            client.ack([(job.jid, None)])
        else:
            client.fail(job.jid, error.group, error.message)

    def _transcode(self, client: Client, job: FetchedJob, random: Random) -> None:
        frames = random.randrange(2_000, 9_000)
        for percent in range(0, 100, random.randrange(4, 9)):
            client.set_progress(job.jid, percent, f"frame {frames * percent // 100} of {frames}")
            client.beat()
            if not self._pause(random.uniform(0.6, 1.4)):
                return
        client.set_progress(job.jid, 100, "uploaded")
        client.ack([(job.jid, None)])

    def _render(self, client: QlessClient, random: Random) -> None:
        job = client.take(["render", "publish"], 0.0)
        if job is None:
            self._pause(0.5)
            return
        if not self._pause(random.uniform(4, 9) if job.queue == "render" else random.uniform(0.2, 1)):
            return
        error = failure(job.kind, random)
        if error is None:
            client.done(job)
        else:
            client.failed(job, error.message, error.group)

    def _resize(self, client: WorkqClient, random: Random) -> None:
        job = client.take(["thumbnails"], _TAKE_S)
        if job is None or random.random() < 0.08 or not self._pause(random.uniform(0.1, 0.8)):
            return  # a job that is taken and not settled: its lease expires
        if random.random() < 0.05:
            client.failed(job, "not an image")
        else:
            client.done(job, b'{"width":320,"height":200}')

    def _index(self, client: MasenkoClient, random: Random) -> None:
        job = client.take(["search"], _TAKE_S)
        if job is None or not self._pause(random.uniform(0.1, 0.5)):
            return
        if random.random() < 0.1:
            client.failed(job, "index is locked")
        else:
            client.done(job)


def failure(kind: str, random: Random) -> Failure | None:
    """The error of an attempt. None: it succeeds."""
    if random.random() >= _FAILURES.get(kind, _OTHER_FAILURES):
        return None
    group, message = random.choice(_ERRORS.get(kind, _OTHER_ERRORS))
    return Failure(group, message.format(n=random.randrange(100, 10_000)))

"""Outcomes are reported in batches, again until the server has them, and never for a lost lease."""

import asyncio
from collections.abc import Sequence

from crossdock.client.errors import Broken, ClientError, Refused
from crossdock.client.jobs import FetchedJob
from crossdock.worker.leases import Renewer
from crossdock.worker.process import HeldJob
from crossdock.worker.settling import Ack, Fail, Settler, Snooze


def held(jid: str, expires: float = 0.0) -> HeldJob:
    return HeldJob(FetchedJob(jid=jid, kind="k"), expires)


class Server:
    """Records requests. `errors` are raised by the next ones."""

    def __init__(self) -> None:
        self.acks: list[list[str]] = []
        self.others: list[tuple[str, ...]] = []
        self.errors: list[ClientError] = []
        self.refused: dict[str, str] = {}
        self.lost: list[str] = []

    def _answer(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    async def ack(self, jobs: Sequence[tuple[str, bytes | None]], /) -> dict[str, str]:
        self._answer()
        self.acks.append([jid for jid, _ in jobs])
        return self.refused

    async def fail(
        self,
        jid: str,
        kind: str,
        message: str,
        backtrace: Sequence[str] = (),
        *,
        final: bool = False,
        delay_s: float | None = None,
    ) -> bool:
        self._answer()
        self.others.append(("fail", jid, kind))
        return True

    async def snooze(self, jid: str, delay_s: float, reason: str = "", /) -> bool:
        self._answer()
        self.others.append(("snooze", jid, reason))
        return True

    async def extend(self, jids: Sequence[str], lease_s: float, /) -> list[str]:
        self._answer()
        return self.lost


class Bench:
    def __init__(self) -> None:
        self.server = Server()
        self.settled: list[str] = []
        self.unreachable = 0
        self.settler = Settler(
            self.server, settled=lambda each: self.settled.append(each.job.jid), reached=lambda: None,
            unreachable=self._count,
        )  # fmt: skip

    def _count(self, error: ClientError) -> None:
        self.unreachable += 1

    async def flush(self) -> None:
        task = asyncio.create_task(self.settler.run())
        await asyncio.wait_for(self.settler.flushed(), 60)
        task.cancel()


def test_outcomes_are_sent_together() -> None:
    async def run() -> None:
        bench = Bench()
        for number in range(2_500):
            bench.settler.add(Ack(held(f"job-{number}"), None))
        bench.settler.add(Fail(held=held("job-f"), type="E", message="m"))
        bench.settler.add(Snooze(held("job-s"), 0.0, "why"))
        await bench.flush()
        assert [len(each) for each in bench.server.acks] == [1_000, 1_000, 500]
        assert bench.server.others == [("fail", "job-f", "E"), ("snooze", "job-s", "why")]
        assert len(bench.settled) == 2_502

    asyncio.run(run())


def test_outcomes_are_sent_again_until_the_server_has_them() -> None:
    async def run() -> None:
        bench = Bench()
        bench.server.errors = [Broken("lost"), Broken("lost"), Broken("lost")]
        bench.settler.add(Ack(held("job-1"), None))
        bench.settler.add(Fail(held=held("job-2"), type="E", message="m"))
        await bench.flush()
        assert (bench.server.acks, bench.server.others) == ([["job-1"]], [("fail", "job-2", "E")])
        assert bench.unreachable == 3
        assert sorted(bench.settled) == ["job-1", "job-2"]

    asyncio.run(run())


def test_a_result_that_the_server_refuses_fails_its_job_only() -> None:
    async def run() -> None:
        bench = Bench()
        bench.server.errors = [Refused("the line is too long")]
        bench.settler.add(Ack(held("job-large"), b'"' + b"x" * 300_000 + b'"'))
        bench.settler.add(Ack(held("job-small"), b"1"))
        await bench.flush()
        assert bench.server.acks == [["job-small"]]
        assert bench.server.others == [("fail", "job-large", "ResultTooLarge")]

    asyncio.run(run())


def test_the_outcome_of_a_lost_lease_is_dropped() -> None:
    async def run() -> None:
        bench, gone = Bench(), held("job-1")
        gone.lost = True
        bench.settler.add(Ack(gone, None))
        await bench.flush()
        assert (bench.server.acks, bench.settled) == ([], ["job-1"])

    asyncio.run(run())


def test_an_outcome_that_waits_is_dropped_when_its_lease_is_lost() -> None:
    """The server has given the job out again, and would take the outcome for that of the new lease."""

    async def run() -> None:
        bench = Bench()
        jobs = [held(f"job-{number}") for number in range(4)]
        for each in jobs[:3]:
            bench.settler.add(Ack(each, None))
        bench.settler.add(Fail(held=jobs[3], type="E", message="m"))
        for number in (0, 2, 3):
            jobs[number].lost = True
        await bench.flush()
        assert (bench.server.acks, bench.server.others) == ([["job-1"]], [])
        assert sorted(bench.settled) == [f"job-{number}" for number in range(4)]

    asyncio.run(run())


def renew(server: Server, *jobs: HeldJob) -> list[str]:
    """Renew the leases once. Returns the IDs of those that are lost."""
    lost: list[str] = []
    renewer = Renewer(
        server, 60.0, lambda: jobs, lost=lambda each: lost.append(each.job.jid), reached=lambda: None,
        unreachable=lambda error: None,
    )  # fmt: skip
    asyncio.run(renewer.renew())
    return lost


def test_a_lease_is_lost_if_the_server_says_so() -> None:
    server, kept, gone = Server(), held("job-1"), held("job-2")
    server.lost = ["job-2"]
    assert renew(server, kept, gone) == ["job-2"]
    assert (kept.lost, gone.lost) == (False, True)
    assert kept.expires > 0


def test_a_lease_is_lost_if_it_ends_while_the_server_is_away() -> None:
    server, old, new = Server(), held("job-1", expires=0.0), held("job-2", expires=1e12)
    server.errors = [Broken("lost")]
    assert renew(server, old, new) == ["job-1"]


def test_a_job_that_is_being_settled_is_not_lost() -> None:
    server, done = Server(), held("job-1")
    done.settling = True
    server.lost = ["job-1"]
    assert renew(server, done) == []

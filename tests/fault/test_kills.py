"""SIGKILL under a load of all protocols at once, repeatedly; then every job is accounted for (testing.md section 1).

A job pushed by one protocol is delivered by another and may be settled by a third. A transaction is executed completely
or not at all, an acknowledged result is kept, and a lease bound to its connection is released.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.open import open_reader
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.job import Job, LeaseBinding
from crossdock.model.states import State
from crossdock.protocols.payload import as_args
from tests.support.accounting import Kind, Outcome, Verdict, account
from tests.support.load import Load, named
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.peer import Got
from tests.support.peers import LISTENING, PEERS
from tests.support.scale import tries
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

DONE = frozenset({State.COMPLETE, State.FAILED})


class Outcomes(NamedTuple):
    load: Load
    kills: list[float]

    def verdict(self, jobs: dict[str, Job]) -> Verdict:
        present = [name for name, job in jobs.items() if job.state not in DONE]
        return account(self.load.ops, present, kills=self.kills)


def lost_results(load: Load, jobs: dict[str, Job]) -> Iterator[str]:
    """Completed Workq jobs that are missing or have a different result."""
    for op in load.ops:
        if op.kind is Kind.ACK and op.outcome is Outcome.OK and load.origins[op.jid] == "workq":
            job = jobs.get(op.jid)
            result = job.extra.result if job is not None and job.extra is not None else None
            wanted = op.jid.encode() if op.client.startswith("workq") else b""
            if result is None or (result.ok, result.body) != (True, wanted):
                yield op.jid


def undelivered(jobs: dict[str, Job]) -> list[str]:
    """Jobs that should have been delivered by the end. Only leases bound to no connection may remain."""
    kept = [job for job in jobs.values() if job.state not in DONE]
    return [job.jid for job in kept if job.lease is None or job.lease.bound is LeaseBinding.CONNECTION]


def on_disk(data: Path) -> dict[str, Job]:
    """The jobs by the ids that the load uses."""
    journal = SqliteJournal(DataDir(data))
    try:
        return {named(Got("", "", as_args(job)).text): job for job in recover(journal).state.jobs.values()}
    finally:
        journal.close()


def installed(data: Path) -> bool:
    journal = open_reader(data)
    try:
        return journal.snapshot() is not None
    finally:
        journal.close()


def kill_under_load(data: Path, kills: int, fault: str = "", *, drain: bool = True, after: bool = True) -> Outcomes:
    with Server(data, fault=fault, protocols=LISTENING) as server:
        load, random = Load(server), Random(19)
        load.start()
        dead = load.run_with_kills(server, kills - 1, random, after=False)
        if fault == "frequent-compaction":
            wait_until(lambda: installed(data), "a compaction between the kills", IDLE_PATIENCE_S)
        dead += load.run_with_kills(server, 1, random, after=after)
        load.finish()
        if drain:
            drain_and_stop(server, load)
    return Outcomes(load, dead)


def drain_and_stop(server: Server, load: Load) -> None:
    """Complete all jobs and stop. A lease that was never settled may expire between the last fetch and the end."""
    for _ in range(5):
        load.drain()
        assert server.stop() == 0
        if all(job.state in DONE or job.lease is not None for job in on_disk(server.data).values()):
            return
        server.start()


def test_every_job_is_accounted_for(tmp_path: Path) -> None:
    """The journal is compacted during the whole test."""
    found = kill_under_load(tmp_path / "data", tries(10, 1_000), "frequent-compaction")
    ops, origins, jobs = found.load.ops, found.load.origins, on_disk(tmp_path / "data")
    verdict = found.verdict(jobs)
    count = Counter((op.kind, op.outcome) for op in ops)
    crossed = Counter((origins[op.jid], op.client.partition("-")[0]) for op in ops if op.kind is Kind.FETCH)
    print(
        {f"{kind.value} {outcome.value}": n for (kind, outcome), n in count.items()}, verdict.redelivered, dict(crossed)
    )
    assert verdict.faults == {}
    assert list(lost_results(found.load, jobs)) == []
    assert undelivered(jobs) == []
    assert count[Kind.PUSH, Outcome.OK] > 500
    assert count[Kind.ACK, Outcome.OK] > 300
    assert count[Kind.PUSH, Outcome.UNKNOWN] > 5, "kills must hit pushes in flight"
    assert count[Kind.LOST, Outcome.OK] > 0
    assert verdict.redelivered > 10, "failed jobs must be delivered again"
    assert min(crossed[by, through] for by in PEERS for through in PEERS) > 0, (
        "each protocol must deliver jobs of each protocol"
    )


def test_a_reply_before_the_write_would_be_noticed(tmp_path: Path) -> None:
    # One kill and no operations after it: all clients may then wait for results of lost jobs.
    found = kill_under_load(tmp_path / "data", 1, "early-reply", drain=False, after=False)
    jobs = on_disk(tmp_path / "data")
    assert found.verdict(jobs).lost
    assert list(lost_results(found.load, jobs))


def test_a_lease_forgotten_at_a_restart_would_be_noticed(tmp_path: Path) -> None:
    found = kill_under_load(tmp_path / "data", 2, "lost-lease", drain=False)
    names = {op.jid for op in found.load.ops}
    assert account(found.load.ops, names, kills=found.kills).overlapping


def test_a_connections_lease_that_outlives_it_would_be_noticed(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "data", 2, "kept-lease")
    assert undelivered(on_disk(tmp_path / "data"))

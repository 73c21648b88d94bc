"""SIGKILL under a load of Resqu clients and workers (testing.md section 1).

No job is lost, no unique id stays locked or is used by two jobs, a batch is visible completely or not at all, and each
run of a plan happens exactly once.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from crossdock.engine.state import EngineState
from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.events import AnyEvent, Spawned
from crossdock.model.events.codec import decode_entry
from crossdock.protocols.payload import as_args
from tests.support.accounting import Kind, Op, Outcome, Verdict, account, held_by_two
from tests.support.peer import Got
from tests.support.resqu_load import CONFIG, PLANS, ResquLoad, crc, named
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]


class Outcomes(NamedTuple):
    load: ResquLoad
    events: list[AnyEvent]
    state: EngineState

    @property
    def runs(self) -> Iterator[Spawned]:
        return (event for event in self.events if isinstance(event, Spawned))

    def verdict(self) -> Verdict:
        """Count runs of plans as pushes."""
        made = [
            Op(Kind.PUSH, "server", run.spec.jid, 0.0, 0.0, Outcome.OK, crc("plan")) for run in self.runs if run.number
        ]
        present = {named(Got(job.jid, job.kind, as_args(job))) for job in self.state.jobs.values()}
        return account([*made, *self.load.ops], present)


def kill_under_load(data: Path, kills: int, fault: str = "", *, drain: bool = True) -> Outcomes:
    settings = data.with_name("crossdock.toml")
    settings.write_text(CONFIG)
    with Server(data, {"config": settings, "resqu.fail_retries": 1_000}, fault, ("faktory", "redis")) as server:
        load = ResquLoad(server)
        for name, uid in PLANS.items():
            load.plan(name, uid)
        load.start()
        load.run_with_kills(server, kills, Random(31))
        load.finish()
        if drain:
            server.kill()
            jobs = on_disk(data)[1].jobs.values()
            lost_replies = [
                Got(job.jid, job.kind, as_args(job)) for job in jobs if job.lease and job.lease.via == "faktory"
            ]
            server.start()
            load.settle(lost_replies)
            load.drain()
            assert server.stop() == 0
    return Outcomes(load, *on_disk(data))


def on_disk(data: Path) -> tuple[list[AnyEvent], EngineState]:
    journal = SqliteJournal(DataDir(data))
    try:
        events = [event for _, batch in journal.read(0) for event in decode_entry(batch).events]
        return events, recover(journal).state
    finally:
        journal.close()


def wrong_runs(found: Outcomes) -> list[tuple[str, float]]:
    """Runs that happened twice or after a missed one: each plan runs every second."""
    due: dict[str, float] = {}
    wrong = []
    for run in found.runs:
        if run.name in due and run.next != due[run.name] + 1:
            wrong.append((run.name, run.next))
        due[run.name] = run.next
    return wrong


def test_everything_of_resqu_is_accounted_for(tmp_path: Path) -> None:
    found = kill_under_load(tmp_path / "data", 8)
    load, resqu = found.load, found.state.resqu
    verdict = found.verdict()
    count = Counter((op.kind, op.outcome) for op in load.ops)
    runs = Counter(run.name for run in found.runs)
    print({f"{kind.value} {outcome.value}": n for (kind, outcome), n in count.items()}, verdict.redelivered, dict(runs))
    print(f"{load.batches} batches, {load.deferred} deferred")
    assert verdict.faults == {}, verdict
    assert held_by_two(load.ops, load.uids) == []
    assert wrong_runs(found) == []
    assert (found.state.locks, resqu.reserved, resqu.deferred) == ({}, {}, {}), "a unique id is still locked"
    assert (resqu.buffers, resqu.active, resqu.backlogs) == ({}, {}, {})
    assert load.batches > 5
    assert load.deferred > 3
    assert min(runs.values()) > 1
    assert len(runs) == len(PLANS)
    assert count[Kind.FAIL, Outcome.OK] > 5
    assert count[Kind.PUSH, Outcome.REFUSED] > 5, "unique ids must refuse some pushes"
    assert verdict.redelivered > 5, "jobs that failed or lost their worker must be delivered again"


def test_a_reply_before_the_write_would_be_noticed(tmp_path: Path) -> None:
    assert kill_under_load(tmp_path / "data", 2, "early-reply", drain=False).verdict().lost

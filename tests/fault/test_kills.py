"""SIGKILL under load, again and again; then every job is accounted for (RELIABILITY T1)."""

import threading
from pathlib import Path
from random import Random

import pytest

from crossdock.journal.folder import Folder
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite import SqliteJournal
from tests.support.accounting import Kind, Outcome, account
from tests.support.load import Load
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]


def jobs_on_disk(data: Path) -> set[str]:
    journal = SqliteJournal(Folder(data))
    try:
        return set(recover(journal).memory.jids)
    finally:
        journal.close()


def installed(data: Path) -> bool:
    journal = SqliteJournal(Folder(data), read_only=True)
    try:
        return journal.snapshot() is not None
    finally:
        journal.close()


def kill_under_load(data: Path, kills: int, fault: str = "", *, drain: bool = True) -> Load:
    random = Random(19)
    pause = threading.Event()
    with Server(data, fault=fault) as server:
        load = Load(server)
        load.start()
        for _ in range(kills):
            pause.wait(random.uniform(0.2, 1.6))
            load.up.clear()
            server.kill()
            server.start()
            load.up.set()
        pause.wait(1.0)
        load.finish()
        if drain:
            load.drain()
            assert server.stop() == 0
    return load


@pytest.mark.parametrize("fault", ["", "short-tail"], ids=["plain", "while-compacting"])
def test_every_job_is_accounted_for(tmp_path: Path, fault: str) -> None:
    load = kill_under_load(tmp_path / "data", 12, fault)
    verdict = account(load.ops, jobs_on_disk(tmp_path / "data"))
    count = {(kind, outcome): 0 for kind in Kind for outcome in Outcome}
    for op in load.ops:
        count[op.kind, op.outcome] += 1
    print({f"{kind.value} {outcome.value}": n for (kind, outcome), n in count.items() if n}, verdict.again)
    assert verdict.faults == {}
    assert count[Kind.PUSH, Outcome.OK] > 3_000
    assert count[Kind.ACK, Outcome.OK] > 1_000
    assert count[Kind.PUSH, Outcome.UNKNOWN] > 5, "kills hit pushes in flight"
    assert verdict.again > 50, "failed jobs came again"
    assert installed(tmp_path / "data") is bool(fault), "compaction went on between the kills"


def test_a_reply_before_the_write_would_be_noticed(tmp_path: Path) -> None:
    load = kill_under_load(tmp_path / "data", 3, "early-reply", drain=False)
    assert account(load.ops, jobs_on_disk(tmp_path / "data")).lost


def test_a_lease_forgotten_at_a_restart_would_be_noticed(tmp_path: Path) -> None:
    load = kill_under_load(tmp_path / "data", 4, "lost-lease", drain=False)
    assert account(load.ops, {op.jid for op in load.ops}).overlapping

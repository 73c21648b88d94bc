"""SIGKILL between two slices of very many dependents: the next start resolves the rest."""

from pathlib import Path

import pytest

from crossdock.engine.state import EngineState
from crossdock.journal.compaction import compact
from crossdock.journal.data_dir import DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.states import State
from tests.model import invariants
from tests.support.masenko_raw import Raw, ok_body
from tests.support.patience import wait_until
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

MANY = 400
KILLS = 3


def on_disk(data: Path) -> EngineState:
    """The state, which also becomes the snapshot for the next start."""
    folder = DataDir(data)
    journal = SqliteJournal(folder)
    try:
        found = recover(journal)
        journal.install(Snapshot(found.seq, data / compact(data, found.seq).file))
        return recover(journal).state
    finally:
        journal.close()


def end_a_job(server: Server, case: str) -> None:
    """End a job with many dependents. Each dependent enters the queue `after` once it is resolved."""
    peer = Raw(server)
    dependency: int = ok_body(peer.ask('PUSH {"name":"n","queue":"need","retry":0}'))["id"]
    for n in range(MANY):
        blocker = dependency + n if case == "chain" else dependency
        queue = "after" if case == "freed" else "before"
        ok_body(peer.ask(f'PUSH {{"name":"n","queue":"{queue}","deadqueue":"after","blocked_by":[{blocker}]}}'))
    assert ok_body(peer.ask('FETCH {"queues":["need"],"timeout":"5s"}'))["id"] == dependency
    verb = "ACK" if case == "freed" else "NACK"
    assert peer.ask(f'{verb} {{"id":{dependency}}}') == "OK {}\n"
    peer.close()


def wait_for(server: Server, many: int) -> None:
    with server.client() as client:
        wait_until(lambda: client.sizes()["enqueued"] >= many, f"{many} resolved dependents")


@pytest.mark.parametrize("case", ["freed", "lost", "chain"])
def test_dependents_are_resolved_over_kills(tmp_path: Path, case: str) -> None:
    data = tmp_path / "data"
    left = [MANY]
    with Server(data, fault="small-slices", protocols=("faktory", "masenko")) as server:
        end_a_job(server, case)
        for kill in range(1, KILLS + 1):
            wait_for(server, kill * 20)
            server.kill()
            state = on_disk(data)
            invariants.check(state)
            assert state.counters.processed == 1, "the acknowledged change is on disk"
            left.append(len(state.by_state[State.BLOCKED]))
            assert bool(state.unresolved) == bool(left[-1])
            server.start()
        wait_for(server, MANY)
        assert server.stop() == 0
    assert left == sorted(left, reverse=True)
    assert 0 < left[1] < MANY, "the kill must come between two slices"
    state = on_disk(data)
    assert not state.unresolved
    assert {job.state for job in state.jobs.values()} == {State.READY}
    assert len(state.jobs) == MANY

"""SIGKILL under a load with batches, unique jobs, cron and a throttle (testing.md sections 1 and 26).

Afterwards counts are exact, each callback and each cron run happened once, no unique lock is left, and no throttle was
exceeded.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from crossdock.engine.state import EngineState
from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model import events as e
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Spec
from tests.support.accounting import Kind, Op, Outcome, account, held_by_two
from tests.support.special_load import SpecialLoad
from tests.support.special_server import CRON, THROTTLE_S, THROTTLED, SpecialServer

pytestmark = [pytest.mark.fault, pytest.mark.slow]


class Outcomes(NamedTuple):
    load: SpecialLoad
    rows: list[list[e.AnyEvent]]
    state: EngineState

    def events(self, kind: type[Any]) -> Iterator[Any]:
        return (event for row in self.rows for event in row if isinstance(event, kind))


def on_disk(data: Path) -> tuple[list[list[e.AnyEvent]], EngineState]:
    journal = SqliteJournal(DataDir(data))
    try:
        return [decode_entry(batch).events for _, batch in journal.read(0)], recover(journal).state
    finally:
        journal.close()


def kill_under_load(data: Path, kills: int, fault: str = "none") -> Outcomes:
    with SpecialServer(data, fault) as server:
        load = SpecialLoad(server)
        load.start()
        load.run_with_kills(server, kills, Random(29))
        load.finish()
        server.kill()
        leased = [(job.jid, job.lease.worker) for job in on_disk(data)[1].jobs.values() if job.lease]
        server.start()
        load.settle(leased)
        load.drain()
        assert server.stop() == 0
    return Outcomes(load, *on_disk(data))


def created_by_the_server(found: Outcomes) -> Iterator[Op]:
    """Callbacks and cron runs as if a client had pushed them."""
    for event in (*found.events(e.BatchCallbackPushed), *found.events(e.Spawned)):
        spec: Spec = event.spec
        text = msgspec.json.decode(spec.payload)[0]
        yield Op(Kind.PUSH, "server", spec.jid, 0.0, 0.0, Outcome.OK, zlib.crc32(text.encode()))


def most_at_a_time(load: SpecialLoad) -> int:
    """The largest number of leases of the throttled queue that were certainly active at the same time."""
    moments: list[tuple[float, int]] = []
    for op in load.ops:
        if op.kind is Kind.FETCH and load.queues[op.jid] == "throttled":
            ends = [
                s.began for s in load.ops if s.jid == op.jid and s.kind in (Kind.ACK, Kind.FAIL) and s.began > op.ended
            ]
            end = min([op.began + THROTTLE_S, *ends])
            if end > op.ended:
                moments += [(op.ended, 1), (end, -1)]
    most = there = 0
    for _, change in sorted(moments, key=lambda moment: (moment[0], moment[1])):
        there += change
        most = max(most, there)
    return most


def runs_out_of_order(found: Outcomes) -> list[str]:
    """Cron entries with a run before its time or a run that happened twice."""
    due: dict[str, float] = {}
    wrong = []
    for run in found.events(e.Spawned):
        if run.at < due.get(run.name, 0.0) or run.next <= run.at:
            wrong.append(run.name)
        due[run.name] = run.next
    return wrong


def batches_without_callback(found: Outcomes) -> list[str]:
    """Batches that are committed and complete, with successful members only, but have no callback."""
    groups = found.state.batches
    return [name for name, group in groups.items() if group.committed and not group.called]


def test_everything_special_is_accounted_for(tmp_path: Path) -> None:
    found = kill_under_load(tmp_path / "data", 12)
    load = found.load
    verdict = account([*created_by_the_server(found), *load.ops], set(found.state.jids))
    assert verdict.faults == {}
    # Batches
    committed = {event.name for event in found.events(e.BatchCommitted)}
    calls = Counter(event.name for event in found.events(e.BatchCallbackPushed))
    assert calls == dict.fromkeys(committed, 1), "each committed batch must have one callback"
    assert batches_without_callback(found) == []
    for batch in load.batches:
        ok = sum(outcome is Outcome.OK for _, outcome in batch.members)
        group = found.state.batches.get(batch.bid)
        assert group is not None or not ok
        if group is not None:
            assert ok <= group.total <= len(batch.members)
            assert (group.pending, len(group.bad)) == (0, 0)
        assert Outcome.OK not in batch.committed or batch.bid in committed
    assert_callbacks_are_in_the_entry_of_their_cause(found)
    # Locks, throttle, cron
    assert held_by_two(load.ops, load.keys) == []
    assert found.state.locks == {}, "a unique lock outlived its job"
    assert most_at_a_time(load) == THROTTLED
    assert runs_out_of_order(found) == []
    runs = Counter(event.name for event in found.events(e.Spawned))
    print(f"{len(committed)} batches, {len(load.ops)} operations, {verdict.redelivered} redelivered, runs {dict(runs)}")
    assert len(committed) > 20
    assert min(runs[name] for name in CRON) > 5
    assert sum(op.outcome is Outcome.REFUSED for op in load.ops) > 10, "unique locks must refuse some pushes"
    assert sum(op.outcome is Outcome.UNKNOWN for op in load.ops) > 5, "kills must hit operations in flight"


def assert_callbacks_are_in_the_entry_of_their_cause(found: Outcomes) -> None:
    """A callback is in the journal entry of its cause: the batch's commit, or the success of a member."""
    members: dict[int, str] = {}
    for row in found.rows:
        reasons: set[str] = set()
        for event in row:
            if isinstance(event, e.Pushed):
                for number, spec in enumerate(event.specs, event.number):
                    if spec.extra is not None and spec.extra.links is not None:
                        members[number] = spec.extra.links.batch
            elif isinstance(event, e.BatchCommitted):
                reasons.add(event.name)
            elif isinstance(event, e.Succeeded):
                reasons.add(members.get(event.number, ""))
            elif isinstance(event, e.BatchCallbackPushed):
                assert event.name in reasons


def test_callbacks_that_are_not_part_of_the_change_would_be_noticed(tmp_path: Path) -> None:
    assert batches_without_callback(kill_under_load(tmp_path / "data", 3, "late-callbacks"))


def test_a_repeated_cron_run_would_be_noticed(tmp_path: Path) -> None:
    assert runs_out_of_order(kill_under_load(tmp_path / "data", 3, "repeated-cron"))


def test_an_ignored_unique_lock_would_be_noticed(tmp_path: Path) -> None:
    load = kill_under_load(tmp_path / "data", 1, "ignored-locks").load
    assert held_by_two(load.ops, load.keys)


def test_an_exceeded_throttle_would_be_noticed(tmp_path: Path) -> None:
    assert most_at_a_time(kill_under_load(tmp_path / "data", 1, "ignored-throttles").load) > THROTTLED

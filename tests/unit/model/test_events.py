"""A journal of each released version loads for ever, whatever fields are added."""

from typing import Any

import msgspec
import pytest

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.commands import keyspace as k
from crossdock.model.events.codec import decode_entry, encode_entry
from crossdock.model.job import Callback, Extra, Job, Lease, Links, Spec
from crossdock.model.policies import Policy
from crossdock.model.records import Pause, Per
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import spec
from tests.model.coverage import KINDS
from tests.model.old_journal import lines, named, raw_events, tag
from tests.model.story import story
from tests.model.visible_keys import visible


def has_all_of(found: object, stored: object) -> bool:
    """Whether `found` has all values of `stored`. A struct may have more fields."""
    if isinstance(stored, dict):
        return isinstance(found, dict) and all(
            name in found and has_all_of(found[name], each) for name, each in stored.items()
        )
    if isinstance(stored, list):
        return (
            isinstance(found, list)
            and len(found) == len(stored)
            and all(has_all_of(one, other) for one, other in zip(found, stored, strict=True))
        )
    return found == stored


def test_the_stored_journal_has_every_kind_of_event() -> None:
    there = {kind for line in lines() for kind in line.kinds}
    assert [tag(kind) for kind in KINDS if tag(kind) not in there] == [], (
        "add them, as the first lines of tests/model/old_journal.py say"
    )


@pytest.mark.parametrize("number", range(len(lines())))
def test_each_stored_entry_reads_as_it_was_written(number: int) -> None:
    line = lines()[number]
    batch = decode_entry(line.batch)
    assert batch.version == 1
    assert [tag(type(event)) for event in batch.events] == line.kinds
    for event, stored in zip(batch.events, line.events, strict=True):
        assert has_all_of(named(event), stored)


def test_the_stored_journal_gives_the_expected_state() -> None:
    state = EngineState()
    for event, _ in raw_events():
        apply(state, event)
    invariants.check(state)
    assert {job.jid: (job.state.name, job.attempts, job.failures) for job in state.jobs.values()} == {
        "scheduled": ("SCHEDULED", 0, 0),
        "leased": ("LEASED", 1, 0),
        "failed": ("READY", 1, 1),
        "lost": ("READY", 1, 1),
        "lease-expired": ("READY", 1, 0),
        "returned": ("READY", 0, 0),
        "dead": ("DEAD", 1, 1),
        "buried": ("DEAD", 0, 0),
        "waiting": ("SCHEDULED", 0, 0),
        "requeued": ("READY", 0, 0),
        "locked": ("READY", 0, 0),
        "called": ("READY", 0, 0),
        "met": ("READY", 0, 0),
        "scheduled again": ("SCHEDULED", 0, 0),
        "moved": ("LEASED", 1, 0),
        "advanced": ("SCHEDULED", 1, 0),
        "stalled": ("LEASED", 2, 0),
        "blocked": ("READY", 0, 0),
        "revived": ("READY", 1, 0),
        "every-1": ("READY", 0, 0),
        "own-1": ("READY", 0, 0),
        "every-2": ("READY", 0, 0),
        "holder": ("LEASED", 1, 0),
        "unheld": ("READY", 0, 0),
        "surfaced": ("LEASED", 2, 1),
        "first of after it": ("HELD", 0, 0),
        "again-2": ("SCHEDULED", 1, 1),
        "after running": ("SCHEDULED", 0, 0),
        "staged-1": ("HELD", 0, 0),
        "staged-2": ("HELD", 0, 0),
        "loaded": ("READY", 0, 0),
        "rerouted": ("READY", 0, 0),
        "resolved": ("READY", 0, 0),
        "unresolved": ("BLOCKED", 0, 0),
        "kept": ("COMPLETE", 1, 0),
        "snoozed": ("SCHEDULED", 1, 0),
        "in time": ("LEASED", 1, 0),
        "held by rate": ("READY", 0, 0),
        **{job.jid: ("READY", 0, 0) for job in state.jobs.values() if job.kind == "spawned"},
    }
    assert [(load.run, load.new, load.known) for load in state.loads.by_run.values()] == [("run", 1, 1)]
    assert [job.queue for job in state.jobs.values() if job.kind == "spawned"] == ["cron"]
    assert {name: queue.paused for name, queue in state.queues.items()} == {
        "default": False,
        "paused": True,
        "resumed": False,
        "seen": False,
        "cron": False,
        "needs": False,
        "moves": False,
        "elsewhere": False,
        "intervals": False,
        "gates": False,
        "strays": False,
        "beyond": False,
        "units": False,
        "unassigned": False,
        "pool": False,
        "batches": False,
        "from": False,
        "to": True,
        "postponed": False,
        "own": False,
        "rated": False,
    }
    assert {name: queue.pause for name, queue in state.queues.items() if queue.pause is not None} == {
        "paused": Pause(1794767145.5),
        "to": Pause(1794772556.5000007, "the disk is full", "anna"),
    }
    assert [(each.user, each.action, each.count) for each in state.audit] == [
        ("anna", "pause", 1),
        ("ben", "delete", 500),
    ]
    assert {name: lock.holder for name, lock in state.locks.items()} == {
        "lock": 17,
        "uid:handed": 0,
        "uid:again": 44,
        "uid:running": 45,
    }
    assert {name: (stage.phase.name, stage.total) for name, stage in state.resqu.batches.items()} == {
        "after it": ("ACTIVE", 1),
        "lane": ("BACKLOG", 2),
    }
    assert list(state.resqu.deferred) == ["uid:handed"]
    assert {name: (group.total, group.pending, group.called) for name, group in state.batches.items()} == {
        "group": (1, 0, Callback.SUCCESS)
    }
    assert {jid: (track.state, track.percent, track.text) for jid, track in state.progress.items()} == {
        "leased": ("unknown", 75, None),
        "dated": ("unknown", 25, "quarter"),
    }
    assert [(each.queue, each.maximum, each.per, each.timeout_s) for each in state.throttles.values()] == [
        ("throttled", 2, Per.WORKER, 60.0),
        ("", 1, Per.QUEUE, 0.0),
        ("", 0, Per.QUEUE, 0.0),
    ]
    assert {name: (list(each.holders), each.pending) for name, each in state.throttles.items() if each.named} == {
        "gate": ([], {}),
        "ql:q:gates": (["holder"], {}),
    }
    assert [(each.name, each.schedule, each.zone) for each in state.schedules.values()] == [
        ("again", "0 * * * *", "Europe/Berlin"),
        ("\0plan:acc_plan", "P1M", "UTC"),
        ("\0app:shop:every", "@every 3600", "UTC"),
    ]
    assert visible(state, Now(0.0, 0.0)) == {
        b"string": (k.Kind.STRING, b"value", 0.0),
        b"list": (k.Kind.LIST, [b"a", b"c"], 0.0),
        b"set": (k.Kind.SET, {b"member": None}, 0.0),
        b"hash": (k.Kind.HASH, {b"field": b"value"}, 0.0),
        b"sorted": (k.Kind.SORTED, {b"member": 1.5}, 0.0),
    }
    assert state.scripts == {"0123": "dialect"}
    assert (state.once.keep_s, state.once.at_most, list(state.once.jids)) == (7_200.0, 500_000, ["kept"])
    assert {jid: (each.state, each.message) for jid, each in state.outcomes.items()} == {
        "cancelled": ("cancelled", "not needed")
    }
    counters = state.counters
    assert (counters.number, counters.epoch, counters.processed, counters.failures) == (57, 2, 18, 5)


def test_an_unknown_field_at_the_end_is_ignored() -> None:
    """After a downgrade: unknown fields at the end of a struct are ignored."""
    for line in lines():
        known = encode_entry(decode_entry(line.batch))  # with the fields added since
        version, wall, steady, events = msgspec.msgpack.decode(known)
        for event in events:
            if event[0] == "pushed":
                for each in event[4]:
                    each.append("newer")
            event.append({"newer": [1, 2]})
        newer = msgspec.msgpack.encode([version, wall, steady, events, "newer"])
        assert decode_entry(newer) == decode_entry(line.batch)


@pytest.mark.parametrize("kind", KINDS, ids=tag)
def test_a_field_added_at_the_end_with_a_default_reads_old_events(kind: type[e.Event]) -> None:
    newer: Any = msgspec.defstruct(
        kind.__name__, [("added", str, "default")], bases=(kind,), tag=tag(kind), array_like=True
    )
    found = 0
    for event, bare in raw_events():
        if type(event) is kind:
            read = msgspec.convert(bare, newer)
            assert read.added == "default"
            assert all(getattr(read, name) == getattr(event, name) for name in kind.__struct_fields__)
            found += 1
    assert found


@pytest.mark.parametrize("kind", [Job, Spec, Lease, Extra, Policy, Links])
def test_a_field_added_to_a_part_of_a_job_reads_old_snapshots(kind: type[msgspec.Struct]) -> None:
    """Snapshots store whole jobs."""
    bench = story()
    job = bench.state.jobs[bench.state.by_state[State.LEASED][0][1]]
    parts: dict[type[msgspec.Struct], msgspec.Struct | None] = {
        Job: job,
        Spec: spec("a"),
        Lease: job.lease,
        Extra: Extra(b"{}"),
        Policy: job.policy,
        Links: Links(tracked=True),
    }
    newer: Any = msgspec.defstruct("Newer", [("added", int, 7)], bases=(kind,), array_like=True)
    old = msgspec.msgpack.encode(parts[kind])
    assert msgspec.msgpack.decode(old, type=newer).added == 7
    longer = [*msgspec.msgpack.decode(old), "newer"]
    assert msgspec.convert(longer, kind, strict=False) == parts[kind]


def test_a_kind_that_is_not_known_is_an_error() -> None:
    """It is not ignored, because it may have changed a job."""
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'newer'"):
        decode_entry(msgspec.msgpack.encode([1, 0.0, 0.0, [["newer", 1.0]]]))


def test_only_events_that_change_no_job_are_soft() -> None:
    """A lock that a connection reserved for its next push is free after a restart, so the event need not be durable."""
    assert {e.QueueSeen, e.WorkerSeen, e.Reserved, e.Unreserved} == e.SOFT

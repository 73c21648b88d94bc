"""An old journal always loads: what was written once is read for ever, whatever fields are added.

tests/unit/data/journal-v1.jsonl is a journal of event version 1, a batch a line, with every kind of event in it. Lines
are never changed or removed. For a kind that is not in it yet, let the story below go on and add what it then has more:

    python -m tests.unit.test_events >> tests/unit/data/journal-v1.jsonl
"""

import base64
from collections.abc import Iterator
from functools import cache
from math import isinf
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from crossdock.engine.engine import apply
from crossdock.engine.memory import Memory
from crossdock.model import commands as c
from crossdock.model import events as e
from crossdock.model import keys as k
from crossdock.model import loads
from crossdock.model import moves as m
from crossdock.model.clock import Now
from crossdock.model.faces import Entry, What
from crossdock.model.job import Call, Extra, FaktoryFace, Form, Freed, Job, Lease, Links, LockTerms, Spec
from crossdock.model.records import Interval, Per, Recurrence
from crossdock.model.rules import Backoff, Lapse, Rules, Then
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import RULES, Bench, held, spec
from tests.model.coverage import KINDS
from tests.model.key_reference import visible
from tests.model.resqu_story import story_of_resqu

FILE: Final = Path(__file__).parent / "data" / "journal-v1.jsonl"


class Line(msgspec.Struct):
    kinds: list[str]
    batch: bytes
    events: list[dict[str, Any]]  #: each field by its name


@cache
def lines() -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in FILE.read_bytes().splitlines()]


def raw_events() -> Iterator[tuple[e.AnyEvent, list[Any]]]:
    """Each event of the file, decoded, and as the bare list it is on disk."""
    for line in lines():
        bare = msgspec.msgpack.decode(line.batch)
        yield from zip(e.decode_batch(line.batch).events, bare[3], strict=True)


def tag(kind: type[e.Event]) -> str:
    return str(kind.__struct_config__.tag)


def named(value: object) -> Any:
    """With the names of all fields, at any depth."""
    if isinstance(value, msgspec.Struct):
        return {name: named(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [named(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and isinf(value):
        return str(value)  # JSON has no word for it
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def has_all_of(found: object, stored: object) -> bool:
    """`found` says what `stored` says; a struct may have fields more."""
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


def test_there_is_one_of_each_kind() -> None:
    there = {kind for line in lines() for kind in line.kinds}
    assert [tag(kind) for kind in KINDS if tag(kind) not in there] == [], (
        "add them, as the first lines of this file say"
    )


@pytest.mark.parametrize("number", range(len(lines())))
def test_each_batch_reads_as_it_was_written(number: int) -> None:
    line = lines()[number]
    batch = e.decode_batch(line.batch)
    assert batch.version == 1
    assert [tag(type(event)) for event in batch.events] == line.kinds
    for event, stored in zip(batch.events, line.events, strict=True):
        assert has_all_of(named(event), stored)


def test_the_old_journal_still_leads_where_it_led() -> None:
    memory = Memory()
    for event, _ in raw_events():
        apply(memory, event)
    invariants.check(memory)
    assert {job.jid: (job.state.name, job.attempts, job.failures) for job in memory.jobs.values()} == {
        "scheduled": ("SCHEDULED", 0, 0),
        "leased": ("LEASED", 1, 0),
        "failed": ("READY", 1, 1),
        "lost": ("READY", 1, 1),
        "lapsed": ("READY", 1, 0),
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
        **{job.jid: ("READY", 0, 0) for job in memory.jobs.values() if job.kind == "spawned"},
    }
    assert [(load.run, load.new, load.known) for load in memory.loads.by_run.values()] == [("run", 1, 1)]
    assert [job.queue for job in memory.jobs.values() if job.kind == "spawned"] == ["cron"]
    assert {name: queue.paused for name, queue in memory.queues.items()} == {
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
        "to": False,
    }
    assert {name: lock.holder for name, lock in memory.locks.items()} == {
        "lock": 17,
        "uid:handed": 0,
        "uid:again": 43,
        "uid:running": 44,
    }
    assert {name: (stage.phase.name, stage.total) for name, stage in memory.resqu.stages.items()} == {
        "after it": ("ACTIVE", 1),
        "lane": ("BACKLOG", 2),
    }
    assert list(memory.resqu.deferred) == ["uid:handed"]
    assert {name: (group.total, group.pending, group.called) for name, group in memory.groups.items()} == {
        "group": (1, 0, Call.SUCCESS)
    }
    assert {jid: (track.state, track.percent, track.text) for jid, track in memory.tracks.items()} == {
        "leased": ("unknown", 75, None),
        "dated": ("unknown", 25, "quarter"),
    }
    assert [(each.queue, each.maximum, each.per, each.timeout_s) for each in memory.throttles.values()] == [
        ("throttled", 2, Per.WORKER, 60.0),
        ("", 1, Per.QUEUE, 0.0),
        ("", 0, Per.QUEUE, 0.0),
    ]
    assert {name: (list(each.holders), each.pending) for name, each in memory.throttles.items() if each.named} == {
        "gate": ([], {}),
        "ql:q:gates": (["holder"], {}),
    }
    assert [(each.name, each.schedule, each.zone) for each in memory.recurrences.values()] == [
        ("again", "0 * * * *", "Europe/Berlin"),
        ("\0plan:acc_plan", "P1M", "UTC"),
    ]
    assert visible(memory, Now(0.0, 0.0)) == {
        b"string": (k.Kind.STRING, b"value", 0.0),
        b"list": (k.Kind.LIST, [b"a", b"c"], 0.0),
        b"set": (k.Kind.SET, {b"member": None}, 0.0),
        b"hash": (k.Kind.HASH, {b"field": b"value"}, 0.0),
        b"sorted": (k.Kind.SORTED, {b"member": 1.5}, 0.0),
    }
    assert memory.scripts == {"0123": "dialect"}
    counters = memory.counters
    assert (counters.number, counters.epoch, counters.processed, counters.failures) == (48, 2, 16, 5)


def test_a_field_that_a_newer_program_added_is_passed_over() -> None:
    """Going back a version: what this program does not know at the end of a struct, it does not miss."""
    for line in lines():
        known = e.encode_batch(e.decode_batch(line.batch))  # with the fields added since
        version, wall, steady, events = msgspec.msgpack.decode(known)
        for event in events:
            if event[0] == "pushed":
                for each in event[4]:
                    each.append("newer")
            event.append({"newer": [1, 2]})
        newer = msgspec.msgpack.encode([version, wall, steady, events, "newer"])
        assert e.decode_batch(newer) == e.decode_batch(line.batch)


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


@pytest.mark.parametrize("kind", [Job, Spec, Lease, Extra, Rules, Links])
def test_so_does_one_added_to_what_jobs_are_made_of(kind: type[msgspec.Struct]) -> None:
    """Snapshots keep whole jobs."""
    bench = story()
    job = bench.memory.jobs[bench.memory.shelves[State.LEASED][0][1]]
    parts: dict[type[msgspec.Struct], msgspec.Struct | None] = {
        Job: job,
        Spec: spec("a"),
        Lease: job.lease,
        Extra: Extra(b"{}"),
        Rules: job.rules,
        Links: Links(tracked=True),
    }
    newer: Any = msgspec.defstruct("Newer", [("added", int, 7)], bases=(kind,), array_like=True)
    old = msgspec.msgpack.encode(parts[kind])
    assert msgspec.msgpack.decode(old, type=newer).added == 7
    longer = [*msgspec.msgpack.decode(old), "newer"]
    assert msgspec.convert(longer, kind, strict=False) == parts[kind]


def test_a_kind_that_is_not_known_is_an_error() -> None:
    """It is not passed over: it may have changed a job."""
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'newer'"):
        e.decode_batch(msgspec.msgpack.encode([1, 0.0, 0.0, [["newer", 1.0]]]))


def test_only_what_changes_nothing_for_a_job_is_soft() -> None:
    """A lock that a connection has reserved for its next push is free again after a restart: it need not be durable."""
    assert {e.QueueSeen, e.WorkerSeen, e.Reserved, e.Unreserved} == e.SOFT


def story() -> Bench:
    """At least one of each kind of event, in a plausible order."""
    bench = Bench()
    bench.do(c.Start())
    bench.push("flushed")
    bench.do(c.Flush("faktory"))
    face = FaktoryFace("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 5, True)
    far = bench.now.wall + 9e6
    rich = Rules(25, 3, 90.0, Backoff.POLYNOMIAL, Then.DEAD, Then.GONE, Lapse.FAILURE)
    scheduled = Spec("scheduled", "default", "kind", b'{"a":1.0}', Form.JSON, 4, rich, far, Extra(b'{"b":2}', face))
    bench.do(c.Enqueue("faktory", [scheduled]))
    for jid in ("succeeded", "failed"):
        bench.push(jid, priority=2)
        bench.lease()
        bench.clock.pass_by(0.25)
    bench.succeed("succeeded")
    bench.fail("failed")
    for jid, rules in (("dead", Rules(-1, exhausted=Then.DEAD)), ("gone", Rules(0))):
        bench.push(jid, rules=rules)
        bench.lease()
        bench.fail(jid)
    bench.push("lost", priority=1)
    bench.push("lapsed", rules=Rules(3, lapse=Lapse.RETURN))
    bench.lease()
    bench.lease()
    bench.after(1_800.0)
    _, requeued, buried, removed = bench.push("waiting", "requeued", "buried", "removed", due=far)
    bench.do(c.Requeue("faktory", [requeued]))
    bench.do(c.Bury("faktory", [buried]))
    bench.do(c.Remove("faktory", "discarded", [removed], frozenset({State.SCHEDULED})))
    bench.push("leased", "returned", priority=3)
    bench.lease(worker="somebody")
    bench.give_back(held(bench.lease()))
    bench.do(c.SetTrack("leased", 50, "half", bench.now.wall + 7_200.0))
    bench.nothing_to_lease("seen", "forgotten", terms=c.Terms(1.0, 1.0, 1.0, registers=True))
    bench.do(c.ForgetQueue("forgotten"))
    for name in ("paused", "resumed"):
        [number] = bench.push(name, queue=name)
        bench.do(c.Remove("faktory", "queue removed", [number], frozenset({State.READY})))
        bench.do(c.PauseQueues([name]))
    bench.do(c.ResumeQueues(["resumed"]))
    return bench


def story_of_records(bench: Bench) -> Bench:
    steady = bench.now.steady
    bench.push("locked", links=Links(LockTerms("lock", steady + 9e6, Freed.SUCCESS)))
    called = Spec(
        "called", "default", "call", b"", Form.NONE, 0, RULES, 0.0, Extra(links=Links(calls="group", call=Call.SUCCESS))
    )
    bench.do(c.OpenGroup("forgotten", "faktory", "", "never committed", called, None))
    bench.after(1_800.0)
    bench.do(c.OpenGroup("group", "faktory", "", "text", None, called))
    bench.push("member", priority=9, links=Links(group="group"))
    bench.do(c.CommitGroup("group"))
    bench.lease()
    bench.succeed("member")
    bench.do(c.OpenGroup("finished", "faktory", "", "", None, None))
    bench.do(c.CommitGroup("finished"))
    bench.do(c.SetThrottles([("throttled", 2, Per.WORKER, 60.0)]))
    again = Spec("", "cron", "spawned", b"[]", Form.JSON, 0, RULES)
    bench.do(c.SetRecurrences([Recurrence("again", "faktory", "0 * * * *", "Europe/Berlin", again, 0.0)]))
    bench.after(3_600.0)
    bench.do(c.SetTrack("leased", 75, None))
    bench.restart()
    bench.do(c.SetTrack("dated", 25, "quarter"))
    return bench


def story_of_needs(bench: Bench) -> Bench:
    [need] = bench.push("need", queue="needs")
    bench.push("met", queue="needs", links=Links(needs=(need,)))
    bench.push("scheduled again", queue="needs", due=bench.now.wall + 9e6, links=Links(needs=(need,)))
    bench.lease("needs")
    bench.succeed("need")
    bench.do(c.DrawNumbers(2))
    return bench


def story_of_keys(bench: Bench) -> Bench:
    bench.do(k.SetKey(b"string", b"value", bench.now.steady + 9e6))
    bench.do(k.KeepKey(b"string", 0.0))
    bench.do(k.ChangeList(b"list", 0, 0, [b"a", b"b", b"c"]))
    bench.do(k.ChangeList(b"list", 0, drop=[1]))
    bench.do(k.ChangeMembers(b"set", k.Kind.SET, [(b"member", None)]))
    bench.do(k.ChangeMembers(b"hash", k.Kind.HASH, [(b"field", b"value"), (b"dropped", b"")]))
    bench.do(k.ChangeMembers(b"hash", k.Kind.HASH, drop=[b"dropped"]))
    bench.do(k.ChangeMembers(b"sorted", k.Kind.SORTED, [(b"member", 1.5)]))
    bench.do(k.SetKey(b"dropped", b""))
    bench.do(k.DropKeys([b"dropped"]))
    bench.do(k.KnowScript("forgotten", "dialect"))
    bench.do(k.ForgetScripts())
    bench.do(k.KnowScript("0123", "dialect"))
    return bench


def story_of_moves(bench: Bench) -> Bench:
    """A queue of qless' jobs: each is put, some are held, moved, edited, warned of and brought back."""

    def put(jid: str, t: float, **more: Any) -> int:
        bench.do(m.Put("qless", t, "w", jid, "moves", "klass", b"{}", Form.JSON, **more))
        return newest_number(bench, jid)

    def pop(t: float, count: int = 1) -> None:
        bench.do(m.Pop("qless", t, "moves", "w", count, 60.0))

    put("moved", 1.0)
    put("moved", 2.0, delay=5.0, priority=3, tags=("red", 7), retries=2)
    advanced = put("advanced", 3.0)
    pop(4.0)
    bench.do(m.Advance("qless", 5.0, advanced, b"[]", "moves", 9e6))
    stalled = put("stalled", 6.0)
    pop(7.0, 2)
    bench.do(m.TakeBack("qless", 7.5, [stalled]))
    pop(8.0)
    pop(1_000.0)
    bench.do(m.SetPriority("qless", 1_001.0, stalled, 1.5))
    bench.do(m.EditTags("qless", 1_002.0, stalled, add=("blue",), drop=("green",)))
    bench.do(m.Note("qless", 1_003.0, stalled, Entry(1_003.0, What.SAID, "text", data=b'{"a":1}')))
    blocked = put("blocked", 1_004.0, needs=["stalled"])
    bench.do(m.EditNeeds("qless", 1_005.0, blocked, ()))
    revived = put("revived", 1_006.0, priority=9)
    pop(1_007.0)
    claim = c.Claim("qless", "w", held(bench.job(revived)))
    bench.do(c.Fail("revived", claim, "group", "message", t=1_008.0, final=True))
    bench.do(m.Unfail("qless", 1_009.0, "group", "elsewhere", 25))
    bench.do(m.Configure("heartbeat", "90"))
    bench.do(m.Watch("stalled", 1_010.0))
    bench.do(m.Watch("blocked", 1_010.0))
    bench.do(m.Unwatch("blocked"))
    bench.do(m.Pop("qless", 1_011.0, "elsewhere", "forgotten", 0, 60.0))
    bench.do(m.ForgetWorkers(["forgotten"], with_jobs=True))
    wall = bench.now.wall
    every = Interval("every", "intervals", "klass", b"{}", Form.JSON, 60, 1_012.0, wall, 1, ("red",), 2, 3)
    bench.do(m.SetInterval(every, 1_012.0))
    bench.do(m.SetInterval(msgspec.structs.replace(every, jid="cleared"), 1_013.0))
    bench.do(m.ClearInterval("cleared"))
    bench.do(m.CatchUp("qless", "intervals", 1_100.0, 5))
    return bench


def story_of_throttles(bench: Bench) -> Bench:
    """A throttle with one place: the second job is held, and freed by hand."""
    bench.do(m.SetThrottle("gate", 1, 9e6))
    for jid in ("holder", "unheld"):
        put = m.Put("qless", 1_200.0, "w", jid, "gates", "klass", b"{}", Form.JSON)
        bench.do(msgspec.structs.replace(put, throttles=("gate", "ql:q:gates"), keeps=True))
        bench.do(m.Pop("qless", 1_201.0, "gates", "w", 1, 60.0))
    bench.do(m.FreeThrottle("gate", ("holder",), 1_202.0))
    return bench


def story_of_strays(bench: Bench) -> Bench:
    """A completion that names another queue leaves a lock behind, which is handed over when it is over."""
    bench.do(m.Put("qless", 1_300.0, None, "surfaced", "strays", "klass", b"{}", Form.JSON, old=True))
    for t in (1_301.0, 1_400.0):  # leased, then warned of
        bench.do(m.Pop("qless", t, "strays", "w", 1, 60.0))
    number = newest_number(bench, "surfaced")
    bench.do(m.Advance("qless", 1_401.0, number, b"{}", "beyond", under="another"))
    bench.do(m.Pop("qless", 1_500.0, "strays", "w", 1, 60.0))
    return bench


def story_of_loads(bench: Bench) -> Bench:
    bench.do(loads.LoadJobs("crossdock", "run", [spec("loaded"), spec("loaded")]))
    bench.do(loads.CloseLoad("run"))
    return bench


def story_of_rerouting(bench: Bench) -> Bench:
    numbers = bench.push("rerouted", queue="from")
    bench.do(c.Reroute("control", "to", numbers))
    return bench


def newest_number(bench: Bench, jid: str) -> int:
    return [job.number for job in bench.memory.named(jid)][-1]


def main() -> None:
    """Print what the story has beyond the file."""
    whole = story_of_throttles(story_of_moves(story_of_keys(story_of_needs(story_of_records(story())))))
    whole = story_of_rerouting(story_of_loads(story_of_resqu(story_of_strays(whole))))
    for batch in whole.batches[len(lines()) :]:
        events = e.decode_batch(batch).events
        line = Line([tag(type(event)) for event in events], batch, [named(event) for event in events])
        print(msgspec.json.encode(line).decode())


if __name__ == "__main__":
    main()

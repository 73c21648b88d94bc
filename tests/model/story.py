"""Commands that make each kind of event at least once, in a plausible order. Those of Resqu are in resqu_story.py."""

from typing import Any
from unittest.mock import patch

import msgspec

from crossdock.engine.index import dependents
from crossdock.model.commands import admin, bulk
from crossdock.model.commands import core as c
from crossdock.model.commands import extensions as x
from crossdock.model.commands import keyspace as k
from crossdock.model.commands import qless as m
from crossdock.model.job import Callback, Extra, FaktoryData, Form, Links, LockRelease, LockTerms, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessDialect
from crossdock.model.records import FROM_SETTINGS, Interval, Per, RateScope, RateSpec, Schedule
from crossdock.model.states import State
from tests.model.bench import RULES, Bench, held, spec
from tests.model.resqu_story import story_of_resqu


def story() -> Bench:
    """Events of jobs, leases and queues."""
    bench = Bench()
    bench.do(c.Start())
    bench.push("flushed")
    bench.do(admin.Flush("faktory"))
    protocol_data = FaktoryData("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 5, True)
    far = bench.now.wall + 9e6
    rich = Policy(25, 3, 90.0, Backoff.POLYNOMIAL, Disposition.DEAD, Disposition.GONE, LeaseExpiry.FAILURE)
    scheduled = Spec(
        "scheduled", "default", "kind", b'{"a":1.0}', Form.JSON, 4, rich, far, Extra(b'{"b":2}', protocol_data)
    )
    bench.do(c.Enqueue("faktory", [scheduled]))
    for jid in ("succeeded", "failed"):
        bench.push(jid, priority=2)
        bench.lease()
        bench.clock.pass_by(0.25)
    bench.succeed("succeeded")
    bench.fail("failed")
    for jid, policy in (("dead", Policy(-1, exhausted=Disposition.DEAD)), ("gone", Policy(0))):
        bench.push(jid, policy=policy)
        bench.lease()
        bench.fail(jid)
    bench.push("lost", priority=1)
    bench.push("lease-expired", policy=Policy(3, lease_expiry=LeaseExpiry.RETURN))
    bench.lease()
    bench.lease()
    bench.after(1_800.0)
    _, requeued, buried, removed = bench.push("waiting", "requeued", "buried", "removed", due=far)
    bench.do(admin.Requeue("faktory", [requeued]))
    bench.do(admin.Bury("faktory", [buried]))
    bench.do(admin.Remove("faktory", "discarded", [removed], frozenset({State.SCHEDULED})))
    bench.push("leased", "returned", priority=3)
    bench.lease(worker="other")
    bench.give_back(held(bench.lease()))
    bench.do(c.SetProgress("leased", 50, "half", bench.now.wall + 7_200.0))
    bench.nothing_to_lease("seen", "forgotten", terms=c.LeaseTerms(1.0, 1.0, 1.0, registers=True))
    bench.do(admin.ForgetQueue("forgotten"))
    for name in ("paused", "resumed"):
        [number] = bench.push(name, queue=name)
        bench.do(admin.Remove("faktory", "queue removed", [number], frozenset({State.READY})))
        bench.do(admin.PauseQueues([name]))
    bench.do(admin.ResumeQueues(["resumed"]))
    return bench


def story_of_records(bench: Bench) -> Bench:
    steady = bench.now.steady
    bench.push("locked", links=Links(LockTerms("lock", steady + 9e6, LockRelease.SUCCESS)))
    called = Spec(
        "called",
        "default",
        "call",
        b"",
        Form.NONE,
        0,
        RULES,
        0.0,
        Extra(links=Links(callback_of="group", callback=Callback.SUCCESS)),
    )
    bench.do(c.OpenBatch("forgotten", "faktory", "", "never committed", called, None))
    bench.after(1_800.0)
    bench.do(c.OpenBatch("group", "faktory", "", "text", None, called))
    bench.push("member", priority=9, links=Links(batch="group"))
    bench.do(c.CommitBatch("group"))
    bench.lease()
    bench.succeed("member")
    bench.do(c.OpenBatch("finished", "faktory", "", "", None, None))
    bench.do(c.CommitBatch("finished"))
    bench.do(c.SetThrottles([("throttled", 2, Per.WORKER, 60.0)]))
    again = Spec("", "cron", "spawned", b"[]", Form.JSON, 0, RULES)
    bench.do(c.SetSchedules([Schedule("again", "faktory", "0 * * * *", "Europe/Berlin", again, 0.0)]))
    bench.after(3_600.0)
    bench.do(c.SetProgress("leased", 75, None))
    bench.restart()
    bench.do(c.SetProgress("dated", 25, "quarter"))
    return bench


def story_of_dependencies(bench: Bench) -> Bench:
    [dependency] = bench.push("need", queue="needs")
    bench.push("met", queue="needs", links=Links(depends_on=(dependency,)))
    bench.push("scheduled again", queue="needs", due=bench.now.wall + 9e6, links=Links(depends_on=(dependency,)))
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


def story_of_qless(bench: Bench) -> Bench:
    """qless jobs of one queue that are put, moved, edited, warned and revived, and recurring jobs."""

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
    bench.do(m.Note("qless", 1_003.0, stalled, HistoryEntry(1_003.0, HistoryKind.SAID, "text", data=b'{"a":1}')))
    blocked = put("blocked", 1_004.0, depends_on=["stalled"])
    bench.do(m.EditDependencies("qless", 1_005.0, blocked, ()))
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
    bench.do(m.SetInterval(msgspec.structs.replace(every, jid="own", next=wall, by_server=True), wall))
    bench.do(m.ClearInterval("cleared"))
    bench.do(m.CatchUp("qless", "intervals", 1_100.0, 5))
    return bench


def story_of_throttles(bench: Bench) -> Bench:
    """A throttle with one place: the second job is held until a caller frees the throttle."""
    bench.do(m.SetThrottle("gate", 1, 9e6))
    for jid in ("holder", "unheld"):
        put = m.Put("qless", 1_200.0, "w", jid, "gates", "klass", b"{}", Form.JSON)
        bench.do(msgspec.structs.replace(put, throttles=("gate", "ql:q:gates"), keeps=True))
        bench.do(m.Pop("qless", 1_201.0, "gates", "w", 1, 60.0))
    bench.do(m.FreeThrottle("gate", ("holder",), 1_202.0))
    return bench


def story_of_stray_entries(bench: Bench) -> Bench:
    """A completion that names another queue leaves a stray lock. A pop reaches it after it has expired."""
    bench.do(m.Put("qless", 1_300.0, None, "surfaced", "strays", "klass", b"{}", Form.JSON, old=True))
    for t in (1_301.0, 1_400.0):  # leased, then warned
        bench.do(m.Pop("qless", t, "strays", "w", 1, 60.0))
    number = newest_number(bench, "surfaced")
    bench.do(m.Advance("qless", 1_401.0, number, b"{}", "beyond", qless=QlessDialect("another")))
    bench.do(m.Pop("qless", 1_500.0, "strays", "w", 1, 60.0))
    return bench


def story_of_loads(bench: Bench) -> Bench:
    bench.do(bulk.LoadJobs("crossdock", "run", [spec("loaded"), spec("loaded")]))
    bench.do(bulk.CloseLoad("run"))
    return bench


def story_of_rerouting(bench: Bench) -> Bench:
    numbers = bench.push("rerouted", queue="from")
    bench.do(admin.Reroute("control", "to", numbers))
    return bench


def story_of_postponing(bench: Bench) -> Bench:
    """A job with more dependents than one command resolves. One of them is still unresolved at the end."""
    [dependency] = bench.push("postponing", queue="postponed")
    bench.push("resolved", "unresolved", queue="postponed", links=Links(depends_on=(dependency,)))
    bench.lease("postponed")
    with patch.object(dependents, "AT_ONCE", 1):
        bench.succeed("postponing")
    bench.do(c.ResolveDependents(1))
    return bench


def story_of_operators(bench: Bench) -> Bench:
    """A queue that is paused with a reason, and the audit trail."""
    bench.do(admin.PauseQueues(["to"], reason="the disk is full", user="anna"))
    bench.do(admin.Audit("anna", "local", "admin", "pause", "names:to", 1))
    for continues in (False, True):
        bench.do(admin.Audit("ben", "192.0.2.7", "http", "delete", "states:dead", 250, continues))
    return bench


def story_of_extensions(bench: Bench) -> Bench:
    """Remembered pushes, a kept result, a snoozed job, the outcome of a cancelled one, and schedules of an app."""
    bench.do(x.ConfigureOnce(7_200.0, 500_000))
    kept = Policy(25, success=Disposition.COMPLETE)
    bench.do(x.EnqueueOnce("faktory", [spec("kept", "own", policy=kept, links=Links(keep_result_s=9e6))]))
    bench.lease("own")
    bench.do(x.ExtendLeases([x.LeaseClaim("kept", c.Claim("faktory", "w"))], 7_200.0))
    bench.do(c.Succeed("kept", c.Claim("faktory", "w"), b"[1]"))
    _, cancelled = bench.push("snoozed", "cancelled", queue="own", links=Links(keep_result_s=9e6))
    bench.do(x.Snooze("snoozed", c.Claim("faktory", "w", held(bench.lease("own"))), 9e6, "busy"))
    bench.do(admin.Remove("faktory", "canceled", [cancelled], frozenset({State.READY}), "not needed"))
    every = Schedule("every", "faktory", "@every 3600", "UTC", spec("", "own"), 0.0, text=b"{}")
    bench.do(x.SetAppSchedules("shop", [every]))
    return bench


def story_of_rates(bench: Bench) -> Bench:
    """A rate limit of one lease in a quarter of a second: the second job is held until the next token is there."""
    rate = RateSpec("limited", RateScope.QUEUE, "unused", 5, 60.0), RateSpec("kind", RateScope.KIND, "kind", 1, 0.25)
    bench.do(c.SetRates(FROM_SETTINGS, rate))
    bench.push("in time", "held by rate", queue="rated")
    bench.lease("rated")
    bench.nothing_to_lease("rated")
    bench.after(0.25)
    bench.do(c.SetRates(FROM_SETTINGS, ()))
    return bench


def newest_number(bench: Bench, jid: str) -> int:
    return [job.number for job in bench.state.named(jid)][-1]


def whole_story() -> Bench:
    bench = story_of_throttles(story_of_qless(story_of_keys(story_of_dependencies(story_of_records(story())))))
    bench = story_of_rerouting(story_of_loads(story_of_resqu(story_of_stray_entries(bench))))
    return story_of_rates(story_of_extensions(story_of_operators(story_of_postponing(bench))))

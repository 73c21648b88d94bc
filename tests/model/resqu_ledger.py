"""What Resqu's clients were told, beside what the journal says. It knows nothing of the engine's memory.

R1  an acknowledged push is present, or ended by an event that says how; never twice         `_born`, `audit`
R2  a unique id has one holder at a time, a connection or a job                              `_take`
R3  what is deferred is kept until it is pushed or deleted, whatever becomes of its blocker  `_dropped`, `audit`
R4  nobody leases a job of a batch before its commit; in a batch they come in order          `_leased`
R5  two leases of a job never overlap; each further one has a cause                          `_leased`, `_closed`
R6  a plan's runs come one interval after the other, none twice                              `_spawned`
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.events import resqu as q
from crossdock.model.job import Spec
from crossdock.model.states import State
from tests.model.resqu_reference.jobs import protocol_data, uid_of


@dataclass
class Life:
    spec: Spec
    stage: str = ""
    token: int = 0
    begun: bool = False  #: it was leased at least once


class ResquLedger:
    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.ended: dict[int, str] = {}
        self.born: dict[bytes, int] = {}  #: by text
        self.before: set[str] = set()  #: jids of jobs that go on under others; a repeat of their pushes is known
        self.acknowledged: list[tuple[bytes, str]] = []
        self.locks: dict[str, int] = {}
        self.deferred: dict[str, bytes] = {}
        self.promised: set[bytes] = set()  #: texts that were told to be deferred
        self.kept: set[bytes] = set()  #: of these: pushed, or dropped by somebody's word
        self.dropped: dict[str, bytes] = {}  #: by this batch's last event
        self.committed_stages: set[str] = set()
        self.next: dict[str, float] = {}

    def pushed(self, text: bytes, jid: str) -> None:
        """A reply has left that said so."""
        assert text in self.born or jid in {life.spec.jid for life in self.lives.values()} or self._knows(jid)
        self.acknowledged.append((text, jid))

    def _knows(self, jid: str) -> bool:
        return jid in self.ended.values() or jid in self.before

    def committed(self, event: e.AnyEvent, now: Now) -> None:
        reader = _READERS.get(type(event))
        if reader is not None:
            reader(self, event, now)

    def _enter(self, number: int, spec: Spec) -> None:
        text = protocol_data(spec).text
        assert number not in self.lives
        assert number not in self.ended
        self.born[text] = number
        self.lives[number] = Life(spec, spec.extra.stage if spec.extra is not None else "")
        uid = uid_of(spec)
        if uid:
            assert self.locks.get(uid, 0) == 0, f"{uid} has two holders"
            self.locks[uid] = number
        self.kept.add(text)

    def _pushed(self, event: e.Pushed, now: Now) -> None:
        for number, spec in enumerate(event.specs, event.number):
            assert protocol_data(spec).text not in self.born or not protocol_data(spec).stamped, "one push, two jobs"
            self._enter(number, spec)

    def _spawned(self, event: e.Spawned, now: Now) -> None:
        assert event.next > self.next[event.name]
        assert self.next[event.name] <= now.wall, "not before it is due"
        self.next[event.name] = event.next
        if event.number:
            self._enter(event.number, event.spec)

    def _plan_set(self, event: q.PlanSet, now: Now) -> None:
        self.next[event.plan.name] = event.plan.next

    def _staged(self, event: q.ResquBatchPushed, now: Now) -> None:
        self._enter(event.number, event.spec)

    def _stage_committed(self, event: q.ResquBatchCommitted, now: Now) -> None:
        if event.name not in self.committed_stages:  # again: a mapping came
            assert len([life for life in self.lives.values() if life.stage == event.name]) == event.jobs, "all of them"
        self.committed_stages.add(event.name)

    def _stage_finished(self, event: q.ResquBatchFinished, now: Now) -> None:
        for life in self.lives.values():
            life.stage = "" if life.stage == event.name else life.stage

    def _leased(self, event: e.Leased, now: Now) -> None:
        life = self.lives[event.number]
        assert not life.token, "leased twice at a time"
        if life.stage and not life.begun:
            assert life.stage in self.committed_stages, "nobody sees it before its commit"
            before = [n for n, each in self.lives.items() if each.stage == life.stage and not each.begun]
            assert min(before) == event.number, "in order"
        life.token, life.begun = event.token, True

    def _closed(self, event: e.ClosingEvent, now: Now) -> None:
        life = self.lives[event.number]
        assert life.token == event.token, "settled with an older lease"
        life.token = 0
        if isinstance(event, e.LeaseExpired | e.Returned):
            return
        if isinstance(event, q.Rescheduled):
            self.before.add(life.spec.jid)
            life.spec, life.stage = event.to, ""
            self.born[protocol_data(event.to).text] = event.number
        elif getattr(event, "then", None) is State.GONE:
            self._end(event.number, event.jid)
        else:
            life.stage = ""

    def _end(self, number: int, jid: str) -> None:
        life = self.lives.pop(number)
        self.ended[number] = jid
        uid = uid_of(life.spec)
        if uid and self.locks.get(uid) == number:
            del self.locks[uid]

    def _rerouted(self, event: e.Rerouted, now: Now) -> None:
        for row in event.rows:
            life = self.lives[row.number]
            assert not life.token, "it is its holder's"
            if event.freed:
                assert life.stage in self.committed_stages, "nobody sees it before its commit"
                life.stage = ""

    def _buried(self, event: e.Buried, now: Now) -> None:
        for row in event.rows:
            life = self.lives[row.number]
            assert not life.token, "it is its holder's"
            life.stage, uid = "", uid_of(life.spec)
            if uid and self.locks.get(uid) == row.number:
                del self.locks[uid]

    def _removed(self, event: e.Removed, now: Now) -> None:
        for row in event.rows:
            life = self.lives[row.number]
            stage = life.stage
            assert event.why != "abandoned" or stage not in self.committed_stages, "what is committed stays"
            self._end(row.number, row.jid)

    def _reserved(self, event: q.Reserved, now: Now) -> None:
        uid = event.name.removeprefix("uid:")
        assert uid not in self.locks
        self.locks[uid] = 0

    def _handed(self, event: q.Handed, now: Now) -> None:
        self.locks[event.name.removeprefix("uid:")] = 0

    def _unreserved(self, event: q.Unreserved, now: Now) -> None:
        for name in event.names:
            del self.locks[name.removeprefix("uid:")]

    def _unlocked(self, event: q.Unlocked, now: Now) -> None:
        del self.locks[event.name.removeprefix("uid:")]

    def _started(self, event: e.Started, now: Now) -> None:
        self.locks = {uid: holder for uid, holder in self.locks.items() if holder}

    def _deferred(self, event: q.Deferred, now: Now) -> None:
        assert event.name not in self.deferred, "one for each unique id"
        self.deferred[event.name] = protocol_data(event.spec).text
        self.promised.add(protocol_data(event.spec).text)

    def _dropped(self, event: q.DeferralDropped, now: Now) -> None:
        self.kept.add(self.deferred.pop(event.name))

    def audit(self) -> None:
        """At the end, with nothing left."""
        assert not self.lives
        assert not self.deferred, "what was deferred never came"
        assert self.promised <= self.kept


_READERS: Final[dict[type[e.Event], Callable[[ResquLedger, Any, Now], None]]] = {
    e.Pushed: ResquLedger._pushed,
    e.Spawned: ResquLedger._spawned,
    e.Leased: ResquLedger._leased,
    e.Succeeded: ResquLedger._closed,
    e.Failed: ResquLedger._closed,
    e.LeaseExpired: ResquLedger._closed,
    e.Returned: ResquLedger._closed,
    q.Rescheduled: ResquLedger._closed,
    e.Buried: ResquLedger._buried,
    e.Removed: ResquLedger._removed,
    e.Rerouted: ResquLedger._rerouted,
    e.Started: ResquLedger._started,
    q.Reserved: ResquLedger._reserved,
    q.Unreserved: ResquLedger._unreserved,
    q.Handed: ResquLedger._handed,
    q.Unlocked: ResquLedger._unlocked,
    q.Deferred: ResquLedger._deferred,
    q.DeferralDropped: ResquLedger._dropped,
    q.ResquBatchPushed: ResquLedger._staged,
    q.ResquBatchCommitted: ResquLedger._stage_committed,
    q.ResquBatchFinished: ResquLedger._stage_finished,
    q.PlanSet: ResquLedger._plan_set,
}

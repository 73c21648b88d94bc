"""Checks the replies that Resqu's clients received against the journal. It does not read the engine's state.

R1  an acknowledged push is present, or ended by an event that says how; never twice    `_enter`, `audit`
R2  a unique id has one holder at a time, a connection or a job                         `_enter`, `_reserved`
R3  a deferred job is kept until it is pushed or deleted, however its blocker ends      `_dropped`, `audit`
R4  no job of a batch is leased before the commit; jobs of a batch are leased in order  `_leased`
R5  two leases of a job never overlap; each further one has a cause                     `_leased`, `_closed`
R6  the runs of a plan follow each other by one interval, none twice                    `_spawned`
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
    batch: str = ""
    token: int = 0
    begun: bool = False  #: whether it was leased at least once


class ResquLedger:
    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.ended: dict[int, str] = {}
        self.born: dict[bytes, int] = {}  #: by text
        self.before: set[str] = set()  #: former jids of rescheduled jobs; a repeat of their push is recognised
        self.acknowledged: list[tuple[bytes, str]] = []
        self.locks: dict[str, int] = {}
        self.deferred: dict[str, bytes] = {}
        self.promised: set[bytes] = set()  #: texts that were accepted as deferred
        self.kept: set[bytes] = set()  #: texts that were pushed, or whose deferral was dropped
        self.committed_batches: set[str] = set()
        self.next: dict[str, float] = {}

    def pushed(self, text: bytes, jid: str) -> None:
        """The reply to an accepted push was sent."""
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
        self.lives[number] = Life(spec, spec.extra.resqu_batch if spec.extra is not None else "")
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
        assert self.next[event.name] <= now.wall, "a plan ran before it was due"
        self.next[event.name] = event.next
        if event.number:
            self._enter(event.number, event.spec)

    def _plan_set(self, event: q.PlanSet, now: Now) -> None:
        self.next[event.plan.name] = event.plan.next

    def _pushed_to_batch(self, event: q.ResquBatchPushed, now: Now) -> None:
        self._enter(event.number, event.spec)

    def _batch_committed(self, event: q.ResquBatchCommitted, now: Now) -> None:
        if event.name not in self.committed_batches:  # otherwise a new mapping committed it again
            jobs = [life for life in self.lives.values() if life.batch == event.name]
            assert len(jobs) == event.jobs, "a batch was committed in part"
        self.committed_batches.add(event.name)

    def _batch_finished(self, event: q.ResquBatchFinished, now: Now) -> None:
        for life in self.lives.values():
            life.batch = "" if life.batch == event.name else life.batch

    def _leased(self, event: e.Leased, now: Now) -> None:
        life = self.lives[event.number]
        assert not life.token, "a job has two leases"
        if life.batch and not life.begun:
            assert life.batch in self.committed_batches, "leased before the commit"
            waiting = [n for n, each in self.lives.items() if each.batch == life.batch and not each.begun]
            assert min(waiting) == event.number, "leased out of order"
        life.token, life.begun = event.token, True

    def _closed(self, event: e.ClosingEvent, now: Now) -> None:
        life = self.lives[event.number]
        assert life.token == event.token, "settled with an older lease"
        life.token = 0
        if isinstance(event, e.LeaseExpired | e.Returned):
            return
        if isinstance(event, q.Rescheduled):
            self.before.add(life.spec.jid)
            life.spec, life.batch = event.to, ""
            self.born[protocol_data(event.to).text] = event.number
        elif getattr(event, "then", None) is State.GONE:
            self._end(event.number, event.jid)
        else:
            life.batch = ""

    def _end(self, number: int, jid: str) -> None:
        life = self.lives.pop(number)
        self.ended[number] = jid
        uid = uid_of(life.spec)
        if uid and self.locks.get(uid) == number:
            del self.locks[uid]

    def _rerouted(self, event: e.Rerouted, now: Now) -> None:
        for row in event.rows:
            life = self.lives[row.number]
            assert not life.token, "a leased job was moved"
            if event.freed:
                assert life.batch in self.committed_batches, "moved before the commit"
                life.batch = ""

    def _buried(self, event: e.Buried, now: Now) -> None:
        for row in event.rows:
            life = self.lives[row.number]
            assert not life.token, "a leased job was buried"
            life.batch, uid = "", uid_of(life.spec)
            if uid and self.locks.get(uid) == row.number:
                del self.locks[uid]

    def _removed(self, event: e.Removed, now: Now) -> None:
        for row in event.rows:
            batch = self.lives[row.number].batch
            assert event.why != "abandoned" or batch not in self.committed_batches, "a committed batch was abandoned"
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
        assert event.name not in self.deferred, "two deferred jobs for one unique id"
        self.deferred[event.name] = protocol_data(event.spec).text
        self.promised.add(protocol_data(event.spec).text)

    def _dropped(self, event: q.DeferralDropped, now: Now) -> None:
        self.kept.add(self.deferred.pop(event.name))

    def audit(self) -> None:
        """The checks at the end, when no job is left."""
        assert not self.lives
        assert not self.deferred, "a deferred job was never pushed"
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
    q.ResquBatchPushed: ResquLedger._pushed_to_batch,
    q.ResquBatchCommitted: ResquLedger._batch_committed,
    q.ResquBatchFinished: ResquLedger._batch_finished,
    q.PlanSet: ResquLedger._plan_set,
}

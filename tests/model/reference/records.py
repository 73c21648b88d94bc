"""The records beside the job (MODEL section 7), as plainly as they can be written: the reference's other half.

A group keeps its members by name and counts them when asked; a throttle counts the leases there are. Nothing is kept
that can be found by looking.
"""

from dataclasses import dataclass, field
from typing import Final

from crossdock.model.clock import Now
from crossdock.model.commands.core import OpenBatch
from crossdock.model.job import Callback, Links, LockRelease, Spec
from crossdock.model.records import Per, Schedule

DAY: Final = 86_400.0
HALF_HOUR: Final = 1_800.0


@dataclass
class Lock:
    holder: int
    end: float  #: steady


@dataclass
class Track:
    state: str
    updated: float
    end: float  #: by the time of events
    percent: int | None = None
    text: str | None = None
    until: float = 0.0  #: steady


@dataclass
class Group:
    asked: OpenBatch
    created: float
    end: float  #: steady
    committed: bool = False
    members: dict[int, str] = field(default_factory=dict)  #: number → waiting, bad or good
    called: set[Callback] = field(default_factory=set)
    answered: set[Callback] = field(default_factory=set)
    finished: set[Callback] = field(default_factory=set)
    unfinished: dict[Callback, set[str]] = field(
        default_factory=lambda: {call: set() for call in Callback}
    )  #: children

    def callback(self, call: Callback) -> Spec | None:
        return self.asked.complete if call is Callback.COMPLETE else self.asked.success

    def is_answered(self, call: Callback) -> bool:
        return self.callback(call) is None or call in self.answered

    def is_due(self, call: Callback) -> bool:
        """All members were executed and all children are; for success: all of it well, and `complete` was answered."""
        if self.unfinished[call]:
            return False
        if call is Callback.COMPLETE:
            return "waiting" not in self.members.values()
        return set(self.members.values()) <= {"good"} and self.is_answered(Callback.COMPLETE)

    def is_finished(self, call: Callback) -> bool:
        """Its callbacks are answered as well: those that can still come."""
        if not self.is_due(Callback.COMPLETE) or not self.is_answered(Callback.COMPLETE):
            return False
        if call is Callback.COMPLETE and ("bad" in self.members.values() or self.unfinished[Callback.SUCCESS]):
            return True
        return self.is_due(Callback.SUCCESS) and self.is_answered(Callback.SUCCESS)

    def wants(self, call: Callback) -> bool:
        return self.committed and self.callback(call) is not None and call not in self.called and self.is_due(call)

    def ends(self, call: Callback) -> bool:
        return self.committed and call not in self.finished and self.is_finished(call)


@dataclass
class Records:
    locks: dict[str, Lock] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    tracks: dict[str, Track] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)
    steady: float = 0.0  #: of the command in hand

    # What happens to a job with links

    def entered(self, number: int, jid: str, links: Links, at: float, *, failed_before: bool) -> None:
        if links.lock is not None:
            self.locks[links.lock.name] = Lock(number, links.lock.end)
        if links.group:
            self.groups[links.group].members[number] = "bad" if failed_before else "waiting"
            self.touched.append(links.group)
        if links.tracked:
            self.note(jid, at, "enqueued")

    def leased(self, number: int, jid: str, links: Links, at: float) -> None:
        if links.lock is not None and links.lock.freed is LockRelease.START:
            self._let_go(number, links)
        if links.tracked:
            self.note(jid, at, "working")

    def back(self, number: int, jid: str, links: Links, at: float, *, started: bool) -> None:
        lock = links.lock
        if lock is not None and lock.freed is LockRelease.START and not started and lock.end > self.steady:
            held = self.locks.get(lock.name)
            if held is None or held.end <= self.steady:
                self.locks[lock.name] = Lock(number, lock.end)
        if links.tracked:
            self.note(jid, at, "enqueued")

    def failed(self, number: int, jid: str, links: Links, at: float, state: str, *, over: bool = False) -> None:
        if over and links.lock is not None and links.lock.freed is LockRelease.END:
            self._let_go(number, links)
        if links.group in self.groups:
            self.groups[links.group].members[number] = "bad"
            self.touched.append(links.group)
        if links.tracked:
            self.note(jid, at, state)

    def gone(self, number: int, jid: str, links: Links, at: float, *, success: bool) -> None:
        self._let_go(number, links)
        if links.group in self.groups:
            self.groups[links.group].members[number] = "good" if success else "bad"
            self.touched.append(links.group)
        if success and links.call is not None and links.calls in self.groups:
            self.groups[links.calls].answered.add(links.call)
            self.touched.append(links.calls)
        if links.tracked:
            self.note(jid, at, "success" if success else "dead")

    def _let_go(self, number: int, links: Links) -> None:
        if links.lock is not None and links.lock.name in self.locks and self.locks[links.lock.name].holder == number:
            del self.locks[links.lock.name]

    def note(self, jid: str, at: float, state: str | None, percent: int | None = None, text: str | None = None) -> None:
        track = self.tracks.setdefault(jid, Track("unknown", at, 0.0))
        track.updated, track.end, track.until = at, at + HALF_HOUR, self.steady + HALF_HOUR
        track.state = state or track.state
        track.percent = track.percent if percent is None else percent
        track.text = track.text if text is None else text

    # Groups

    def open(self, asked: OpenBatch, at: float, now: Now) -> None:
        self.groups[asked.name] = Group(asked, at, now.steady + HALF_HOUR)
        if asked.parent in self.groups:
            for children in self.groups[asked.parent].unfinished.values():
                children.add(asked.name)

    def commit(self, name: str, now: Now) -> None:
        self.groups[name].committed = True
        self.groups[name].end = now.steady + 30 * DAY
        self.touched.append(name)

    def follow(self, now: Now) -> list[tuple[Group, Spec]]:
        """One round: which callbacks are to be pushed. A group finished by it touches its parent: another round."""
        names, self.touched = dict.fromkeys(self.touched), []
        groups = [self.groups[name] for name in names if name in self.groups]
        wanted = [(group, call) for group in groups for call in Callback if group.wants(call)]
        ended = [(group, call) for group in groups for call in Callback if group.ends(call)]
        for group, call in wanted:
            group.called.add(call)
        for group, call in ended:
            group.finished.add(call)
            if call is Callback.SUCCESS:
                group.end = now.steady + HALF_HOUR
            self._tell_parent(group, call)
        return [(group, spec) for group, call in wanted if (spec := group.callback(call)) is not None]

    def _tell_parent(self, group: Group, call: Callback) -> None:
        parent = self.groups.get(group.asked.parent)
        if parent is not None:
            parent.unfinished[call].discard(group.asked.name)
            self.touched.append(group.asked.parent)

    def overlooked(self) -> list[str]:
        """Groups that call for something nobody did; always empty between commands."""
        return [
            name
            for name, group in self.groups.items()
            if any(group.wants(call) or group.ends(call) for call in Callback)
        ]

    # Time

    def ends(self) -> list[list[tuple[float, str]]]:
        """Of locks, groups and tracks, in the order they end; locks that end together by their holders' age."""
        locks = sorted((each.end, each.holder, name) for name, each in self.locks.items())
        groups = sorted((each.end, name) for name, each in self.groups.items())
        return [
            [(end, name) for end, _, name in locks],
            groups,
            sorted((each.until, jid) for jid, each in self.tracks.items()),
        ]

    def forget(self, locks: list[str], groups: list[str], tracks: list[str]) -> None:
        """Those of these whose time is over; what changed since they were chosen may have a new end."""
        for name in locks:
            if name in self.locks and self.locks[name].end <= self.steady:
                del self.locks[name]
        for name in groups:
            group = self.groups.pop(name)
            if Callback.COMPLETE not in group.finished:
                self._tell_parent(group, Callback.COMPLETE)
        for jid in tracks:
            if self.tracks[jid].until <= self.steady:
                del self.tracks[jid]


@dataclass
class Throttle:
    maximum: int
    per: Per
    timeout_s: float


#: The schedules the tests use: period and offset in seconds, UTC.
SCHEDULES: Final = {"*/5 * * * *": (300, 0), "0 * * * *": (3_600, 0), "30 3 * * *": (86_400, 12_600)}


def next_run(recurrence: Schedule, after: float) -> float:
    period, offset = SCHEDULES[recurrence.schedule]
    return ((after - offset) // period + 1) * period + offset

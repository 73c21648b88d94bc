"""The records beside the jobs (model.md section 7), written as simply as possible.

A group stores its members and counts them when asked; a throttle counts the leases. Nothing is stored that a scan can
find.
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
    percent: int | None = None
    text: str | None = None
    until: float = 0.0  #: steady


@dataclass
class Group:
    opened: OpenBatch
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
        return self.opened.complete if call is Callback.COMPLETE else self.opened.success

    def is_answered(self, call: Callback) -> bool:
        return self.callback(call) is None or call in self.answered

    def is_due(self, call: Callback) -> bool:
        """Whether a callback is due. `COMPLETE`: all members and children were executed. `SUCCESS`: all succeeded, and
        the callback for `COMPLETE` succeeded."""
        if self.unfinished[call]:
            return False
        if call is Callback.COMPLETE:
            return "waiting" not in self.members.values()
        return set(self.members.values()) <= {"good"} and self.is_answered(Callback.COMPLETE)

    def is_finished(self, call: Callback) -> bool:
        """Whether the parent stops waiting: the callbacks that can still be pushed have succeeded."""
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
    steady: float = 0.0  #: of the current command

    # Changes of a job with links

    def entered(self, number: int, jid: str, links: Links, at: float, *, failed_before: bool) -> None:
        if links.lock is not None:
            self.locks[links.lock.name] = Lock(number, links.lock.end)
        if links.batch:
            self.groups[links.batch].members[number] = "bad" if failed_before else "waiting"
            self.touched.append(links.batch)
        if links.tracked:
            self.note(jid, at, "enqueued")

    def leased(self, number: int, jid: str, links: Links, at: float) -> None:
        if links.lock is not None and links.lock.freed is LockRelease.START:
            self._release_lock(number, links)
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
            self._release_lock(number, links)
        if links.batch in self.groups:
            self.groups[links.batch].members[number] = "bad"
            self.touched.append(links.batch)
        if links.tracked:
            self.note(jid, at, state)

    def ended(self, number: int, jid: str, links: Links, at: float, *, success: bool) -> None:
        self._release_lock(number, links)
        if links.batch in self.groups:
            self.groups[links.batch].members[number] = "good" if success else "bad"
            self.touched.append(links.batch)
        if success and links.callback is not None and links.callback_of in self.groups:
            self.groups[links.callback_of].answered.add(links.callback)
            self.touched.append(links.callback_of)
        if links.tracked:
            self.note(jid, at, "success" if success else "dead")

    def _release_lock(self, number: int, links: Links) -> None:
        if links.lock is not None and links.lock.name in self.locks and self.locks[links.lock.name].holder == number:
            del self.locks[links.lock.name]

    def note(self, jid: str, at: float, state: str | None, percent: int | None = None, text: str | None = None) -> None:
        track = self.tracks.setdefault(jid, Track("unknown", at))
        track.updated, track.until = at, self.steady + HALF_HOUR
        track.state = state or track.state
        track.percent = track.percent if percent is None else percent
        track.text = track.text if text is None else text

    # Groups

    def open(self, command: OpenBatch, at: float, now: Now) -> None:
        self.groups[command.name] = Group(command, at, now.steady + HALF_HOUR)
        if command.parent in self.groups:
            for children in self.groups[command.parent].unfinished.values():
                children.add(command.name)

    def commit(self, name: str, now: Now) -> None:
        self.groups[name].committed = True
        self.groups[name].end = now.steady + 30 * DAY
        self.touched.append(name)

    def follow(self, now: Now) -> list[tuple[Group, Spec]]:
        """The callbacks to push in this round. A group that finishes touches its parent, which needs another round."""
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
            self._notify_parent(group, call)
        return [(group, spec) for group, call in wanted if (spec := group.callback(call)) is not None]

    def _notify_parent(self, group: Group, call: Callback) -> None:
        parent = self.groups.get(group.opened.parent)
        if parent is not None:
            parent.unfinished[call].discard(group.opened.name)
            self.touched.append(group.opened.parent)

    def overlooked(self) -> list[str]:
        """Groups with a callback that is due and was not pushed. Empty between commands."""
        return [
            name
            for name, group in self.groups.items()
            if any(group.wants(call) or group.ends(call) for call in Callback)
        ]

    # Time

    def ends(self) -> list[list[tuple[float, str]]]:
        """Locks, groups and progress records in the order they end. Locks with the same end are ordered by holder."""
        locks = sorted((each.end, each.holder, name) for name, each in self.locks.items())
        groups = sorted((each.end, name) for name, each in self.groups.items())
        return [
            [(end, name) for end, _, name in locks],
            groups,
            sorted((each.until, jid) for jid, each in self.tracks.items()),
        ]

    def forget(self, locks: list[str], groups: list[str], tracks: list[str]) -> None:
        """Removes the named records whose time is over. One that changed since it was selected may have a new end."""
        for name in locks:
            if name in self.locks and self.locks[name].end <= self.steady:
                del self.locks[name]
        for name in groups:
            group = self.groups.pop(name)
            if Callback.COMPLETE not in group.finished:
                self._notify_parent(group, Callback.COMPLETE)
        for jid in tracks:
            if self.tracks[jid].until <= self.steady:
                del self.tracks[jid]


@dataclass
class Throttle:
    maximum: int
    per: Per
    timeout_s: float


#: Period and offset in seconds (UTC) of the schedules that the tests use.
SCHEDULES: Final = {"*/5 * * * *": (300, 0), "0 * * * *": (3_600, 0), "30 3 * * *": (86_400, 12_600)}


def next_run(recurrence: Schedule, after: float) -> float:
    period, offset = SCHEDULES[recurrence.schedule]
    return ((after - offset) // period + 1) * period + offset

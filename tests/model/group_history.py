"""A checker for groups (batches with callbacks) and locks that reads events only (model.md section 7).

`History.add` takes the events of one journal entry. From the events of jobs it derives which callbacks are due and
which locks are held. Every callback that becomes due must be in the same journal entry, and in no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crossdock.model import events as e
from crossdock.model.job import Callback, Links, LockRelease, Spec
from crossdock.model.states import State

COMPLETE, SUCCESS = Callback.COMPLETE, Callback.SUCCESS


@dataclass
class GroupRecord:
    """A group: its members by number, and the state of its callbacks."""

    opened: e.BatchOpened
    committed: bool = False
    members: dict[int, str] = field(default_factory=dict)  #: waiting, bad or good
    children: dict[str, set[Callback]] = field(default_factory=dict)  #: child groups, and which calls they finished
    called: set[Callback] = field(default_factory=set)
    answered: set[Callback] = field(default_factory=set)

    def spec(self, call: Callback) -> Spec | None:
        return self.opened.complete if call is COMPLETE else self.opened.success

    def is_answered(self, call: Callback) -> bool:
        return self.spec(call) is None or call in self.answered

    def all_are(self, call: Callback) -> bool:
        """Whether all members and children were executed (`COMPLETE`) or succeeded (`SUCCESS`)."""
        wanted = {"bad", "good"} if call is COMPLETE else {"good"}
        return set(self.members.values()) <= wanted and all(call in over for over in self.children.values())

    def is_due(self, call: Callback) -> bool:
        return self.committed and self.all_are(call) and (call is COMPLETE or self.is_answered(COMPLETE))

    def is_over(self, call: Callback) -> bool:
        """Whether the parent stops waiting for this group: its possible callbacks have succeeded."""
        if not self.is_due(COMPLETE) or not self.is_answered(COMPLETE):
            return False
        if self.all_are(SUCCESS):
            return self.is_answered(SUCCESS)
        return call is COMPLETE

    @property
    def counts(self) -> tuple[int, int, int]:
        states = list(self.members.values())
        return len(states), len(states) - states.count("good"), states.count("bad")


@dataclass
class History:
    groups: dict[str, GroupRecord] = field(default_factory=dict)
    links: dict[int, Links] = field(default_factory=dict)  #: links of live jobs, by number
    locks: dict[str, int] = field(default_factory=dict)  #: holders by lock name
    fired: list[tuple[str, Callback]] = field(default_factory=list)

    def add(self, events: Sequence[e.AnyEvent]) -> None:
        called = [(event.name, event.call) for event in events if isinstance(event, e.BatchCallbackPushed)]
        for event in events:
            self._read(event)
        due = self._new_callbacks()
        assert sorted(called) == sorted(due), f"called {called}, due {due}"
        self.fired += called

    def _read(self, event: e.AnyEvent) -> None:
        match event:
            case e.Pushed():
                for number, spec in enumerate(event.specs, event.number):
                    self._entered(number, spec)
            case e.BatchCallbackPushed():
                self._entered(event.number, event.spec)
            case e.Leased():
                links = self.links.get(event.number)
                if links is not None and links.lock is not None and links.lock.freed is LockRelease.START:
                    self._release_lock(event.number, links)
            case e.Succeeded():
                self._removed(event.number, success=True)
            case e.Failed() if event.then is State.GONE:
                self._removed(event.number, success=False)
            case e.Failed():
                self._failed(event.number, over=event.then in (State.DEAD, State.FAILED))
            case e.Buried():
                for row in event.rows:
                    self._failed(row.number, over=True)
            case e.Removed():
                for row in event.rows:
                    self._removed(row.number, success=False)
            case e.BatchOpened():
                self.groups[event.name] = GroupRecord(event)
                if event.parent in self.groups:
                    self.groups[event.parent].children[event.name] = set()
            case e.BatchCommitted():
                self.groups[event.name].committed = True
            case e.Expired():
                for name in event.locks:
                    self.locks.pop(name, None)
                for name in event.batches:
                    self._finished(self.groups.pop(name), name, COMPLETE)

    def _entered(self, number: int, spec: Spec) -> None:
        links = spec.extra and spec.extra.links
        if links:
            self.links[number] = links
            if links.batch:
                self.groups[links.batch].members[number] = "waiting"
            if links.lock:
                self.locks[links.lock.name] = number

    def _failed(self, number: int, *, over: bool) -> None:
        links = self.links.get(number, Links())
        if over and links.lock is not None and links.lock.freed is LockRelease.END:
            self._release_lock(number, links)
        if links.batch in self.groups:
            self.groups[links.batch].members[number] = "bad"

    def _removed(self, number: int, *, success: bool) -> None:
        links = self.links.pop(number, Links())
        self._release_lock(number, links)
        if links.batch in self.groups:
            self.groups[links.batch].members[number] = "good" if success else "bad"
        if success and links.callback is not None and links.callback_of in self.groups:
            self.groups[links.callback_of].answered.add(links.callback)

    def _release_lock(self, number: int, links: Links) -> None:
        if links.lock is not None and self.locks.get(links.lock.name) == number:
            del self.locks[links.lock.name]

    def _finished(self, group: GroupRecord, name: str, call: Callback) -> bool:
        """Records at the parent that a child finished a call. True if that is new."""
        parent = self.groups.get(group.opened.parent)
        if parent is None or call in parent.children[name]:
            return False
        parent.children[name].add(call)
        return True

    def _new_callbacks(self) -> list[tuple[str, Callback]]:
        """The callbacks that became due. Repeats until nothing changes, because a finished child affects its parent."""
        due: list[tuple[str, Callback]] = []
        changed = True
        while changed:
            changed = False
            for name, group in self.groups.items():
                for call in Callback:
                    if group.spec(call) is not None and call not in group.called and group.is_due(call):
                        group.called.add(call)
                        due.append((name, call))
                    if group.is_over(call):
                        changed |= self._finished(group, name, call)
        return due

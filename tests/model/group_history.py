"""Groups and locks once more, told by history alone: what the events say happened to each job decides what must follow.

`History.add` takes the events of one batch. It looks at the events of jobs, works out by the words of MODEL section 7
which callbacks are due by them and which locks are held, and holds that against the batch: a callback that is due is in
the batch that made it due, and in no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crossdock.model import events as e
from crossdock.model.job import Callback, Links, LockRelease, Spec
from crossdock.model.states import State

COMPLETE, SUCCESS = Callback.COMPLETE, Callback.SUCCESS


@dataclass
class Tally:
    """A group: its members by number, and what became of its callbacks."""

    asked: e.BatchOpened
    committed: bool = False
    members: dict[int, str] = field(default_factory=dict)  #: waiting, bad or good
    children: dict[str, set[Callback]] = field(default_factory=dict)  #: and what is over with each
    called: set[Callback] = field(default_factory=set)
    answered: set[Callback] = field(default_factory=set)

    def spec(self, call: Callback) -> Spec | None:
        return self.asked.complete if call is COMPLETE else self.asked.success

    def is_answered(self, call: Callback) -> bool:
        return self.spec(call) is None or call in self.answered

    def all_are(self, call: Callback) -> bool:
        """Executed, or succeeded: members and children with their callbacks."""
        wanted = {"bad", "good"} if call is COMPLETE else {"good"}
        return set(self.members.values()) <= wanted and all(call in over for over in self.children.values())

    def is_due(self, call: Callback) -> bool:
        return self.committed and self.all_are(call) and (call is COMPLETE or self.is_answered(COMPLETE))

    def is_over(self, call: Callback) -> bool:
        """Its parent need not wait for it any longer: the callbacks that could come have succeeded."""
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
    groups: dict[str, Tally] = field(default_factory=dict)
    links: dict[int, Links] = field(default_factory=dict)  #: of live jobs that have some
    locks: dict[str, int] = field(default_factory=dict)  #: name → holder
    fired: list[tuple[str, Callback]] = field(default_factory=list)

    def add(self, batch: Sequence[e.AnyEvent]) -> None:
        called = [(event.name, event.call) for event in batch if isinstance(event, e.BatchCallbackPushed)]
        for event in batch:
            self._happened(event)
        due = self._follow()
        assert sorted(called) == sorted(due), f"called {called}, due {due}"
        self.fired += called

    def _happened(self, event: e.AnyEvent) -> None:
        match event:
            case e.Pushed():
                for number, spec in enumerate(event.specs, event.number):
                    self._entered(number, spec)
            case e.BatchCallbackPushed():
                self._entered(event.number, event.spec)
            case e.Leased():
                links = self.links.get(event.number)
                if links is not None and links.lock is not None and links.lock.freed is LockRelease.START:
                    self._let_go(event.number, links)
            case e.Succeeded():
                self._gone(event.number, success=True)
            case e.Failed() if event.then is State.GONE:
                self._gone(event.number, success=False)
            case e.Failed():
                self._bad(event.number, over=event.then in (State.DEAD, State.FAILED))
            case e.Buried():
                for row in event.rows:
                    self._bad(row.number, over=True)
            case e.Removed():
                for row in event.rows:
                    self._gone(row.number, success=False)
            case e.BatchOpened():
                self.groups[event.name] = Tally(event)
                if event.parent in self.groups:
                    self.groups[event.parent].children[event.name] = set()
            case e.BatchCommitted():
                self.groups[event.name].committed = True
            case e.Expired():
                for name in event.locks:
                    self.locks.pop(name, None)
                for name in event.batches:
                    self._over(self.groups.pop(name), name, COMPLETE)

    def _entered(self, number: int, spec: Spec) -> None:
        links = spec.extra and spec.extra.links
        if links:
            self.links[number] = links
            if links.group:
                self.groups[links.group].members[number] = "waiting"
            if links.lock:
                self.locks[links.lock.name] = number

    def _bad(self, number: int, *, over: bool) -> None:
        links = self.links.get(number, Links())
        if over and links.lock is not None and links.lock.freed is LockRelease.END:
            self._let_go(number, links)
        if links.group in self.groups:
            self.groups[links.group].members[number] = "bad"

    def _gone(self, number: int, *, success: bool) -> None:
        links = self.links.pop(number, Links())
        self._let_go(number, links)
        if links.group in self.groups:
            self.groups[links.group].members[number] = "good" if success else "bad"
        if success and links.call is not None and links.calls in self.groups:
            self.groups[links.calls].answered.add(links.call)

    def _let_go(self, number: int, links: Links) -> None:
        if links.lock is not None and self.locks.get(links.lock.name) == number:
            del self.locks[links.lock.name]

    def _over(self, group: Tally, name: str, call: Callback) -> bool:
        """Tell the parent. True: that was news."""
        parent = self.groups.get(group.asked.parent)
        if parent is None or call in parent.children[name]:
            return False
        parent.children[name].add(call)
        return True

    def _follow(self) -> list[tuple[str, Callback]]:
        """The callbacks that are due now, children before their parents: until nothing changes any more."""
        due: list[tuple[str, Callback]] = []
        news = True
        while news:
            news = False
            for name, group in self.groups.items():
                for call in Callback:
                    if group.spec(call) is not None and call not in group.called and group.is_due(call):
                        group.called.add(call)
                        due.append((name, call))
                    if group.is_over(call):
                        news |= self._over(group, name, call)
        return due

"""Jobs that lost a need, and all that need them in turn: depth first in the order they came, so many at a time."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from operator import length_hint

from crossdock.engine.memory import Memory
from crossdock.engine.tries import Told, exhausted
from crossdock.model.clock import Now
from crossdock.model.events import AnyEvent, DependentsPostponed, Failed
from crossdock.model.job import Job, Number
from crossdock.model.policies import Ending, Lost
from crossdock.model.states import BLOCKED, GONE

_WAITS_ON = Lost.WAITS_ON


class Losing:
    """What is decided so far. Nothing is applied meanwhile, so a job may be met twice and fails once."""

    def __init__(self, memory: Memory, at: float, now: Now, limit: int, spared: Collection[Number] = ()) -> None:
        self._memory = memory
        self._began = self.at = at
        self._now = now
        self.left = limit  #: dependents that may yet be looked at
        self.stirred: dict[str, None] = {}
        self._seen: set[Number] = set(spared)
        self._failed: list[Failed] = []
        self._postponed: list[tuple[Number, Ending]] = []

    def events(self) -> list[AnyEvent]:
        """Failures behind what is postponed: a job's own end must not find its dependents any more."""
        put_off = [DependentsPostponed(self._began, *each) for each in self._postponed]
        return [*put_off, *self._failed]

    def lose(self, job: Job, need: Number) -> None:
        """It lost that need. What there is no room for any more is postponed."""
        ending = self._fail(job, need)
        if ending is not None:
            self.follow(job.number, ending)

    def follow(self, number: Number, ending: Ending) -> None:
        """The dependents of a job that ended without success. A chain may be as long as there are jobs, so there is no
        recursion here."""
        jobs, needed_by = self._memory.jobs, self._memory.needed_by
        path: list[tuple[Number, Ending, Iterator[Number]]] = []
        self._enter(path, number, ending)
        while path and self.left:
            need, how, rest = path[-1]
            each = next(rest, None)
            if each is None:
                path.pop()
                continue
            self.left -= 1
            job = jobs[each]
            if job.state is not BLOCKED or each in self._seen or (how is Ending.KEPT and job.rules.lost is _WAITS_ON):
                continue
            its_end = self._fail(job, need)
            if its_end is not None and each in needed_by:
                self._enter(path, each, its_end)
        # What was postponed last is resolved first: the deepest of this job, and this job before those that follow.
        self._postponed[:0] = [(need, how) for need, how, rest in path if length_hint(rest)]

    def _enter(self, path: list[tuple[Number, Ending, Iterator[Number]]], number: Number, ending: Ending) -> None:
        waiting = self._memory.needed_by.get(number)
        if waiting is not None and (ending is Ending.GONE or number in self._memory.strict):
            path.append((number, ending, iter(waiting)))

    def _fail(self, job: Job, need: Number) -> Ending | None:
        """None: it did in this change already."""
        if job.number in self._seen:
            return None
        self._seen.add(job.number)
        event = exhausted(job, None, self.at, self._now, _told(need, job.rules.lost))
        self.at = event.at
        self._failed.append(event)
        if event.to_queue:
            self.stirred[event.to_queue] = None
        return Ending.GONE if event.then is GONE else Ending.KEPT


@lru_cache(maxsize=16)
def _told(need: Number, lost: Lost) -> Told:
    """The same of all that needed it."""
    group = "dependency-lost" if lost is Lost.WAITS_ON else "need-lost"
    return Told("", "", group, f"job {need}, which it needed, cannot succeed", counted=False)

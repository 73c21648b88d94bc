"""The jobs around one job: those it waits for, those that wait for it, and theirs, a few levels each way."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, Final

from crossdock.engine.job_view import edges_of
from crossdock.engine.queries.jobs import dependents_of, job_by_number
from crossdock.engine.state import EngineState
from crossdock.model.job import Job, Number
from crossdock.protocols.admin import messages, selection
from crossdock.protocols.admin.codec import error, reply
from crossdock.protocols.base import Dispatcher

#: Levels of dependencies and of dependents.
LEVELS: Final = 3
#: Jobs of a level. With the job itself at most 49 are shown.
WIDTH: Final = 8


class _Graph:
    def __init__(self, state: EngineState, job: Job) -> None:
        self._state = state
        self.levels: dict[Number, int] = {job.number: 0}
        self.jobs: list[Job] = [job]
        self.edges: dict[tuple[Number, Number], None] = {}  #: dependency, dependent
        self.left_out: Counter[int] = Counter()  #: links to jobs that are not shown, by level

    def grow(self, jobs: list[Job], level: int) -> list[Job]:
        """Add the level beyond `jobs`: below 0 their dependencies, above 0 their dependents."""
        added: list[Job] = []
        for job in jobs:
            beyond = self._dependencies(job) if level < 0 else dependents_of(self._state, job)
            self.left_out[level] += len(beyond) - self._link(job, islice(beyond, WIDTH), level, added)
        return added

    def _link(self, job: Job, numbers: Iterable[Number], level: int, added: list[Job]) -> int:
        """The number of jobs that were linked."""
        linked = 0
        for number in numbers:
            other = job_by_number(self._state, number)
            if other is None:
                continue
            if number not in self.levels:
                if len(added) == WIDTH:
                    continue
                self.levels[number] = level
                self.jobs.append(other)
                added.append(other)
            linked += 1
            self.edges[(number, job.number) if level < 0 else (job.number, number)] = None
        return linked

    def _dependencies(self, job: Job) -> Collection[Number]:
        """Without jobs that are gone. A job can name many, so only the first ones are looked up."""
        found = edges_of(job)
        first = [number for number in found[:WIDTH] if job_by_number(self._state, number) is not None]
        return (*first, *found[WIDTH:])


def graph(dispatcher: Dispatcher, request: messages.Graph) -> bytes:
    state = dispatcher.state
    found = selection.find_jobs(state, request.id)
    if not found:
        return error(f"job {request.id} not found (completed and deleted jobs are not kept)")
    made = _Graph(state, found[-1])
    before, after = [found[-1]], [found[-1]]
    for level in range(1, LEVELS + 1):
        before = made.grow(before, -level)
        after = made.grow(after, level)
    jobs = [_node(job, made.levels[job.number]) for job in made.jobs]
    left_out = {str(level): count for level, count in sorted(made.left_out.items()) if count}
    return reply({"graph": {"jobs": jobs, "edges": list(made.edges), "left_out": left_out}})


def _node(job: Job, level: int) -> dict[str, Any]:
    return {
        "number": job.number,
        "jid": job.jid,
        "queue": job.queue,
        "kind": job.kind,
        "state": job.state.name.lower(),
        "level": level,
    }

"""MUTATE (page 5.10): work on many jobs, in slices of one event each."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from crossdock.model.commands.admin import Bury, Remove, Requeue
from crossdock.model.commands.core import Command
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.wire.answer import Slices
from crossdock.wire.desk import Desk
from crossdock.wire.faktory.job import show
from crossdock.wire.faktory.messages import OK, FilterBody, MutateBody
from crossdock.wire.glob import OPEN_TOO_LONG, Glob
from crossdock.wire.json import compact

SLICE: Final = 500
_BYTES_AS_A_JOB: Final = 4_096  #: looking at so many bytes of payload counts as looking at one more job

#: A class is tried at each byte of a job's text, so many of them on a text of megabytes would take seconds.
REGEXP_AT_MOST: Final = 1_000
CLASSES_AT_MOST: Final = 32

TARGETS: Final = {"retries": State.RETRYING, "scheduled": State.SCHEDULED, "dead": State.DEAD}

_Act = Callable[[list[Number]], Command[int]]

#: A job, and whether it matched. A look that finds nobody is work, too: a million unknown jids must not go in one step.
_Looked: TypeAlias = tuple[Job | None, bool]
_NOBODY: Final[_Looked] = (None, False)


def _acts(via: str, target: State) -> dict[str, _Act]:
    where = frozenset({target})
    return {
        "clear": lambda numbers: Remove(via, "cleared", numbers, where),
        "discard": lambda numbers: Remove(via, "discarded", numbers, where),
        "kill": lambda numbers: Bury(via, numbers),
        "requeue": lambda numbers: Requeue(via, numbers),
    }


def mutate(desk: Desk, via: str, body: MutateBody) -> Slices | str:
    """The work, or what is wrong with the request."""
    target = TARGETS.get(body.target)
    if body.cmd not in ("clear", "discard", "kill", "requeue"):
        return "unknown mutate operation"
    if target is None:
        return "invalid target for mutation command"
    wanted = None if body.cmd == "clear" else body.filter
    if wanted is not None and wanted.regexp:
        if len(wanted.regexp) > REGEXP_AT_MOST:
            return f"regexp must not be longer than {REGEXP_AT_MOST} characters"
        if wanted.regexp.count("[") > CLASSES_AT_MOST:
            return f"regexp must not have more than {CLASSES_AT_MOST} brackets"
        if Glob(wanted.regexp.encode()).too_slow:
            return f"regexp: {OPEN_TOO_LONG}"
    return _work(desk, _acts(via, target)[body.cmd], target, wanted)


def _work(desk: Desk, act: _Act, target: State, wanted: FilterBody | None) -> Slices:
    for numbers in _slices(_matches(desk, target, wanted)):
        desk.do(act(numbers))
        yield
    return OK


def _slices(looked: Iterator[_Looked]) -> Iterator[list[Number]]:
    """Up to SLICE jobs looked at a time, fewer when they are big; the ones that matched."""
    numbers: list[Number] = []
    left = SLICE
    for job, matched in looked:
        left -= 1
        if job is not None:
            left -= len(job.payload) // _BYTES_AS_A_JOB
            if matched:
                numbers.append(job.number)
        if left <= 0:
            yield numbers
            numbers, left = [], SLICE
    yield numbers


def _matches(desk: Desk, target: State, wanted: FilterBody | None) -> Iterator[_Looked]:
    memory = desk.memory
    if wanted is not None and wanted.jids:  # then the other filters do not count (5.10)
        seen: set[str] = set()  # of those that are somebody's: a set of a million takes long to grow
        for jid in wanted.jids:
            yield _NOBODY
            if jid not in seen and (named := list(memory.named(jid))):
                seen.add(jid)
                for job in named:
                    yield job, job.state is target
        return
    holds = _filter(wanted)
    for _, number in list(memory.shelves[target]):
        found = memory.jobs.get(number)
        yield (found, found.state is target and holds(found)) if found is not None else _NOBODY


def _filter(wanted: FilterBody | None) -> Callable[[Job], bool]:
    if wanted is None or not (wanted.regexp or wanted.jobtype):
        return lambda job: True
    glob = Glob(wanted.regexp.encode()) if wanted.regexp else None
    kind = wanted.jobtype

    def holds(job: Job) -> bool:
        return (not kind or job.kind == kind) and (glob is None or glob.matches(compact(show(job))))

    return holds

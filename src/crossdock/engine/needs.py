"""Jobs that need others: the fold's side. `needed_by` in memory has the edges; a blocked job keeps its own needs.

A need is met by success, and lost when the job it names can never succeed. Which events follow is decided by `resolve`,
in the turn of the change that met or lost it.
"""

from msgspec.structs import replace

from crossdock.engine.jobs import BLOCK_BITS
from crossdock.engine.memory import Memory
from crossdock.engine.standing import needs_of
from crossdock.model.errors import Damaged
from crossdock.model.job import Job, Number
from crossdock.model.states import BLOCKED


def met(memory: Memory, number: Number) -> None:
    """That job succeeded. A hundred thousand may have waited for it, and all are told in this one change."""
    blocks, loose, alone = memory.jobs.blocks, memory.loose, (number,)
    for waiting in memory.needed_by.pop(number, ()):
        job = blocks[waiting >> BLOCK_BITS][waiting]
        extra = job.extra
        if extra is None or extra.links is None:
            raise Damaged(f"job {waiting} needs nothing, and waits for job {number}")
        links = extra.links
        needs = links.needs
        if needs == alone:
            needs = ()
            loose.append((waiting, True))
        else:
            at = needs.index(number)  # each is there once (`admit.resolved`)
            needs = needs[:at] + needs[at + 1 :]
        job.extra = replace(extra, links=replace(links, needs=needs))


def lost(memory: Memory, number: Number) -> None:
    """That job will never succeed."""
    if number in memory.needed_by:
        if number not in memory.jobs:
            _forget(memory, number)
        memory.loose.append((number, False))


def _forget(memory: Memory, number: Number) -> None:
    """That job is gone. Who does not wait for it need not be told more."""
    edges = memory.needed_by[number]
    for each in [each for each in edges if memory.jobs[each].state is not BLOCKED]:
        job = memory.jobs[each]
        _set(job, tuple(need for need in needs_of(job) if need != number))
        del edges[each]
    if not edges:
        del memory.needed_by[number]


def _set(job: Job, needs: tuple[Number, ...]) -> None:
    if job.extra is not None and job.extra.links is not None:
        job.extra = replace(job.extra, links=replace(job.extra.links, needs=needs))

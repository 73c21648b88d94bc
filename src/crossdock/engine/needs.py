"""Jobs that need others: the fold's side. `needed_by` in memory has the edges; a blocked job keeps its own needs.

A need is met by success, and lost when the job it names can never succeed. Which events follow is decided by `resolve`,
in the turn of the change that met or lost it. Where very many wait for one job, `postponing` has moved them out of
`needed_by` before, and nothing is done here.
"""

from msgspec.structs import replace

from crossdock.engine import dependents
from crossdock.engine.jobs import BLOCK_BITS
from crossdock.engine.memory import Memory
from crossdock.model.errors import Damaged
from crossdock.model.job import Job, Number
from crossdock.model.states import BLOCKED


def met(memory: Memory, number: Number) -> None:
    """That job succeeded. All that are still in `needed_by` are told in this one change."""
    blocks, loose, alone = memory.jobs.blocks, memory.loose, (number,)
    for waiting in dependents.take_all(memory, number):
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
            at = needs.index(number)
            needs = needs[:at] + needs[at + 1 :]
        job.extra = replace(extra, links=replace(links, needs=needs))


def lost(memory: Memory, number: Number) -> None:
    """That job will never succeed."""
    if number in memory.needed_by:
        if number not in memory.jobs:
            _forget(memory, number)
        elif number not in memory.strict:
            return  # it is kept, and all of them wait on
        memory.loose.append((number, False))


def _forget(memory: Memory, number: Number) -> None:
    """That job is gone. Who does not wait for it need not be told more."""
    for job in [memory.jobs[each] for each in memory.needed_by[number]]:
        if job.state is not BLOCKED:
            without(job, number)
            dependents.take(memory, number, job)


def without(job: Job, need: Number) -> None:
    """It needs that job no longer."""
    if job.extra is not None and job.extra.links is not None:
        links = job.extra.links
        at = links.needs.index(need)  # each is there once (`admit.resolved`)
        job.extra = replace(job.extra, links=replace(links, needs=links.needs[:at] + links.needs[at + 1 :]))

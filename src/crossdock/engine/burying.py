"""Moving jobs to the dead by hand: whatever waits, also for other jobs, for a throttle or in a batch.

A dead job waits for nothing: it has left its batch, its throttle's list and the jobs it needed, so that what brings it
back makes it ready at once. Those that need it have lost it, as they do by any other end (`needs`).
"""

from msgspec.structs import replace

from crossdock.engine import faces, links, needs, placing, throttles
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.putting import unneeding
from crossdock.engine.resqu import lanes
from crossdock.engine.standing import face_of, row
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Bury
from crossdock.model.events import Buried
from crossdock.model.job import Job
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, READY, RETRYING, SCHEDULED, move

#: In which a job can be buried; to bury a dead one anew keeps it for longer.
BURIED_FROM = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD, DEAD})

_HINDRANCES = {
    COMPLETE: "and will not be worked on: delete takes it away",
    FAILED: "and will not be worked on: unfail brings it back, delete takes it away",
    DEAD: "and was before: retry brings it back, delete takes it away",
}


def hindrance(job: Job) -> str:
    """Why there is nothing to kill, as what follows its state, with what could be done; empty: there is."""
    return _HINDRANCES.get(job.state, "")


def bury(memory: Memory, command: Bury, now: Now) -> Decision[int]:
    found = (memory.jobs.get(number) for number in dict.fromkeys(command.numbers))
    jobs = [job for job in found if job is not None and job.state in BURIED_FROM]
    if not jobs:
        return (), 0, ()
    pools = {stage.queue: None for job in jobs if (stage := lanes.stage_of(memory, job)) is not None and stage.queue}
    event = Buried(later(memory, now), command.via, now.wall + DEAD_FOR, [row(job) for job in jobs], freed=True)
    event.due_steady = now.steady + DEAD_FOR
    return (event,), len(jobs), tuple(pools)  # the last job of a batch makes room for the next one


def buried(memory: Memory, event: Buried) -> None:
    for each in event.rows:
        job = memory.jobs[each.number]
        before, state = job.state, move(job.state, DEAD)
        pool = _pool(memory, job) if before is HELD else ""
        placing.displace(memory, job)
        if before is BLOCKED or before is HELD:
            _wait_no_more(memory, job, pool)
        job.state = state
        job.due, job.due_steady = event.due, event.due_steady
        if event.freed and memory.throttles:
            throttles.leave(memory, job)
        placing.place(memory, job)
        if job.extra is not None and job.extra.links is not None:
            links.failed(memory, job, job.extra.links, event.at, "dead")
        if memory.needed_by:
            needs.lost(memory, each.number)


def _pool(memory: Memory, job: Job) -> str:
    """Where its batch was given to, if it was."""
    stage = lanes.stage_of(memory, job)
    return stage.queue if stage is not None else ""


def _wait_no_more(memory: Memory, job: Job, pool: str) -> None:
    job.queue = pool or job.queue
    job.place = None
    lanes.forget_batch(job)
    memory.resqu.in_buffer.pop(job.number, None)  # an allocator that puts its text on later puts on nothing
    face = face_of(job)
    if face is not None:
        faces.write(memory, job, replace(face, state="", due=None, parked=None))
    if job.extra is not None:
        job.extra = unneeding(job.extra)

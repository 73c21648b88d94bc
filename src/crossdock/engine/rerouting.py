"""Taking waiting jobs to another queue as they are, by hand: their state, place, tries, needs and records go along.

A lock keeps the name under which it was taken: whoever pushed the job asked for no other like it while it lives. What
has ended is brought back by `editing.revive`, to any queue; what is leased is its holder's.
"""

from msgspec.structs import replace

from crossdock.engine import faces, placing, throttles
from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import Memory
from crossdock.engine.places import stamped
from crossdock.engine.resqu import lanes, reads
from crossdock.engine.standing import face_of, row
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Reroute
from crossdock.model.events import Rerouted
from crossdock.model.job import BAND_NORMAL, Extra, Job
from crossdock.model.protocol_data import What
from crossdock.model.records import OF_QUEUE
from crossdock.model.states import BLOCKED, HELD, LEASED, READY, RETRYING, SCHEDULED, State, move

#: In which a job can be taken to another queue.
MOVABLE = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD})


def hindrance(memory: Memory, job: Job, queue: str) -> str:
    """Why it cannot be taken to that queue, as what follows its state, with what could be done; empty: it can."""
    if job.state is LEASED:
        return "with its worker: move it when its lease is over, or delete it"
    if job.state not in MOVABLE:
        return (
            "and will not be worked on" if job.state is State.COMPLETE else "not waiting: unfail brings it to any queue"
        )
    if job.queue == queue:
        return "and in that queue already"
    if job.state is HELD:
        stage = job.extra.stage if job.extra is not None else ""
        if stage:
            if reads.committed(memory, stage) is None:
                return "in a batch that is not committed: move it when it is"
        elif job.number in memory.resqu.in_buffer:  # of a staged one: a worker that lost its lease has it there
            return "by an allocator: move it when it is in a queue again"
    return ""


def reroute(memory: Memory, command: Reroute, now: Now) -> Decision[int]:
    found = (memory.jobs.get(number) for number in dict.fromkeys(command.numbers))
    jobs = [job for job in found if job is not None and not hindrance(memory, job, command.queue)]
    at, via, to = later(memory, now), command.via, command.queue
    events = []
    for freed in (False, True):
        rows = [row(job) for job in jobs if (job.state is HELD) is freed]
        if rows:
            events.append(Rerouted(at, via, to, rows, freed))
    # Whoever waits there is asked whatever they are: one may be lazily due.
    return events, len(jobs), (to,) if jobs else ()


def rerouted(memory: Memory, event: Rerouted) -> None:
    queue = memory.queue(event.queue, event.at)
    for each in event.rows:
        job = memory.jobs[each.number]
        if event.freed:
            _free(memory, job, event)
        else:
            placing.displace(memory, job)
        own = OF_QUEUE + job.queue
        if memory.throttles:
            throttles.free(memory, own, job.jid)
        extra, face = job.extra or Extra(), face_of(job)
        if face is not None:
            memory.strays.out_of(job.number, face.queue or job.queue)
            extra = replace(extra, face=replace(face, queue=""))
        line = faces.entry(What.PUT, event.at, queue.name)
        named = tuple(OF_QUEUE + queue.name if name == own else name for name in extra.throttles)
        job.extra = replace(extra, throttles=named, history=faces.history(memory, extra.history, line, face))
        job.queue = queue.name
        placing.place(memory, job)


def _free(memory: Memory, job: Job, event: Rerouted) -> None:
    """It was held by a throttle, which is asked again when it is about to be leased, or in a batch, which it leaves."""
    state = move(job.state, READY)
    staged = job.extra is not None and bool(job.extra.stage)
    since = lanes.since(memory, job) if staged else event.at
    placing.displace(memory, job)
    if memory.throttles:
        throttles.let_go(memory, job, None)
    lanes.forget_batch(job)
    faces.ready(memory, job)
    job.state, job.since = state, since
    job.place = (-job.priority, BAND_NORMAL, since, b"", job.number) if staged else stamped(job, since)

"""`unassigned` and the pools' lists: jobs of a queue, the newest at the head, taken from the tail."""

from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import Pushing, PushJob
from crossdock.model.job import Spec
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Result
from crossdock.protocols.redis.resqu import entries, job_view
from crossdock.protocols.redis.resqu.keys import Name
from crossdock.protocols.redis.resqu.specs import VIA, Specs

# Looked up once: a member of an enumeration costs as much as a call.
_NOT_UNIQUE: Final = Pushing.NOT_UNIQUE
_DUPLICATE: Final = Pushing.DUPLICATE

#: By one command. It is one step of the server: other clients wait for it.
PUSHED_AT_MOST: Final = 5_000


def refuse_if_full(context: Context, jobs: int = 1) -> None:
    """Before they are read."""
    if jobs > PUSHED_AT_MOST:
        raise Error(f"ERR {jobs} jobs in one command; push at most {PUSHED_AT_MOST} at a time")
    no_room = context.dispatcher.no_room(jobs)
    if no_room is not None:
        raise Error(f"OOM {no_room}")


def push(context: Context, spec: Spec) -> None:
    """Raises Error where it was not taken in; who repeats a push is answered as before."""
    outcome = context.dispatcher.do(PushJob(VIA, context.number, spec))
    if outcome is _NOT_UNIQUE:
        links = spec.extra.links if spec.extra is not None else None
        uid = links.lock.name.partition(":")[2] if links is not None and links.lock is not None else ""
        raise Error(f"ERR the unique id '{uid}' is taken by another job, or by who is about to push one")
    if outcome is _DUPLICATE:
        raise Error(f"ERR a job with the id '{spec.jid}' is there already, pushed through another door")


def lpush(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    """LPUSH unassigned: enqueue. Answers how long the list is that the last of them went to."""
    refuse_if_full(context, len(args) - 1)
    if len(args) == 2:
        spec = specs.queued(args[1])
        push(context, spec)
    else:
        found = [specs.queued(text) for text in args[1:]]
        spec = found[-1]
        with context.dispatcher.together():
            for each in found:
                push(context, each)
    state = context.dispatcher.state
    queue = state.queues.get(state.resqu.queue_of(spec))
    return queue.waiting or 1 if queue is not None else 1


def length(state: EngineState, queue: str) -> int:
    found = state.queues.get(queue)
    return found.waiting if found is not None else 0


def read(state: EngineState, key: bytes, queue: str) -> Entry | None:
    found = state.queues.get(queue)
    if found is None or not found.waiting:
        return None
    entries.refuse_if_long(key, found.waiting)
    jobs = [state.jobs[number] for number in found.in_turn()]
    return entries.listed(key, (job_view.text(job) for job in reversed(jobs)))

"""The lease of doors that have no clock of their own: what is due lazily by the server's is carried out first (MODEL
section 2)."""

from typing import TYPE_CHECKING

from crossdock.engine.decision import Decision, Topic
from crossdock.engine.queues import is_full
from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseNext
from crossdock.model.commands.qless import CatchUp, LeaseNow
from crossdock.model.events import AnyEvent
from crossdock.model.job import Job

if TYPE_CHECKING:
    from crossdock.engine.engine import Engine

#: Lazy deadlines that a lease carries out, each kind.
_AT_ONCE = 100


def lease_in_steps(engine: "Engine", command: LeaseNext, now: Now) -> Decision[Job | None]:
    """One change: what has come has to be in its place before the next job is chosen."""
    memory = engine.memory
    events: list[AnyEvent] = []
    stirred: dict[Topic, None] = {}
    for name in dict.fromkeys(command.queues):
        queue = memory.queues.get(name)
        if (queue is not None and queue.paused) or is_full(memory, name, now):
            continue
        if memory.lazy.has_work(name, now):
            caught, _, notices = engine.carry_out(CatchUp(command.via, name, None, _AT_ONCE), now)
            events += caught
            stirred.update(dict.fromkeys(notices))
        queue = memory.queues.get(name)
        if queue is not None and queue.waiting and not command.at_random:
            break
    plain = LeaseNow(command.via, command.queues, command.worker, command.terms, command.at_random)
    leased, job, notices = engine.carry_out(plain, now)
    return (*events, *leased), job, (*stirred, *notices)

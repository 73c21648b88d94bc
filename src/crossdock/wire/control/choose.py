"""From the filters and ids of a request to the jobs they mean."""

from collections.abc import Iterable
from typing import Final

from crossdock.engine.state import Memory
from crossdock.model.clock import Now
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.wire.control.messages import Chosen
from crossdock.wire.control.request import Invalid
from crossdock.wire.control.wanted import ENDED, Wanted, states

#: MODEL section 12.
NAME_BYTES: Final = 255


def instant(memory: Memory, now: Now) -> float:
    """Now, as events will have it: jobs that change their state from here on will have done so later."""
    return max(now.wall, memory.counters.at)


def wanted(request: Chosen, memory: Memory, now: Now, allowed: Iterable[State] | None = None) -> Wanted:
    """Without states: all that are allowed. Raises Invalid."""
    can = states(memory) if allowed is None else list(allowed)
    words = {state.name.lower(): state for state in can}
    chosen = set()
    for word in request.states:
        if word not in words:
            raise Invalid(f'state "{word[:64]}" cannot be chosen here; there are {", ".join(words)}')
        chosen.add(words[word])
    before = request.as_of
    if request.older_than is not None:
        before = (instant(memory, now) if before is None else before) - request.older_than
    among = frozenset(chosen or can)
    if request.failure is not None:
        among &= ENDED
    return Wanted(among, request.queue or "", request.kind or "", request.tag, request.failure, before)


def missing(request: Chosen, memory: Memory) -> dict[str, list[str]]:
    """Filters that name a queue or a group of failures that is not there, for the first answer to a request. Jobs may
    be found all the same: a dead one in a queue that was forgotten. A later page says nothing: what the request does
    may have emptied them."""
    if request.after is not None or request.as_of is not None:
        return {}
    queue = request.queue is not None and request.queue not in memory.queues
    failure = request.failure is not None and request.failure not in memory.failures.groups
    found = [name for name, is_missing in (("queue", queue), ("failure", failure)) if is_missing]
    return {"missing": found} if found else {}


def named(memory: Memory, name: int | str) -> list[Job]:
    """All live jobs that this means, oldest first: those of that jid, or else the one of that number."""
    if isinstance(name, str):
        jobs = list(memory.named(name))
        if jobs or not (name.isascii() and name.isdecimal()):
            return jobs
    job = memory.jobs.get(Number(int(name)))
    return [] if job is None else [job]


def new_name(name: str) -> str:
    """Of a queue or a job that need not be there yet. Raises Invalid."""
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES:
        raise Invalid(f"a name has 1 to {NAME_BYTES} bytes, and no NUL in it")
    return name

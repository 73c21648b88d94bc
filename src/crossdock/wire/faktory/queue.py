"""QUEUE (page 5.11): pause, resume, remove, and how long the oldest job of a queue has waited."""

from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from crossdock.model.commands.admin import ForgetQueue, PauseQueues, Remove, ResumeQueues
from crossdock.model.states import State
from crossdock.wire.answer import Answer, Slices
from crossdock.wire.desk import Desk
from crossdock.wire.faktory.job import NAME_BYTES
from crossdock.wire.faktory.messages import OK, bulk, error
from crossdock.wire.faktory.mutate import SLICE

QUEUES_AT_MOST: Final = 1_000

#: Jobs of batches that a queue works on are held until they are fetched.
_WAITING: Final = frozenset({State.READY, State.HELD})


@lru_cache(maxsize=1_024)
def names(body: bytes) -> tuple[str, ...]:
    """Workers ask for the same queues over and over. A name cut at the limit of a name cannot be a queue's."""
    return tuple(name[: NAME_BYTES + 1] for name in body.decode("utf-8", "replace").split(" "))


def queue(desk: Desk, via: str, body: bytes) -> Answer:
    if body.count(b" ") > QUEUES_AT_MOST:
        return error(f"QUEUE takes at most {QUEUES_AT_MOST} names")
    word, blank, rest = body.decode("utf-8", "replace").partition(" ")
    names = rest.split(" ") if blank else []
    sub = word.upper()
    if sub not in ("PAUSE", "RESUME", "REMOVE", "LATENCY"):
        return error(f"no such QUEUE subcommand: {sub}")
    if sub == "LATENCY":
        return _latency(desk, names)
    if not names:
        return error("internal error")
    if sub == "REMOVE":
        return _remove(desk, via, list(desk.memory.queues) if names == ["*"] else names)
    chosen = None if names == ["*"] else names
    desk.do(PauseQueues(chosen) if sub == "PAUSE" else ResumeQueues(chosen))
    return OK


def _latency(desk: Desk, names: list[str]) -> bytes:
    if names == ["*"]:
        return error("QUEUE LATENCY does not support wildcards")
    waits: dict[str, float] = {}
    for name in sorted(set(names)):
        known = desk.memory.queues.get(name)
        since = known.oldest(desk.memory.jobs) if known is not None else None
        waits[name] = 0 if since is None else max(0.0, desk.now.wall - since)
    return bulk(msgspec.json.encode(waits))


def _remove(desk: Desk, via: str, names: list[str]) -> Slices:
    """Waiting jobs, name and pause are gone; scheduled and retrying jobs stay and bring the name back."""
    for name in names:
        known = desk.memory.queues.get(name)
        if known is None:
            continue
        numbers = iter([place[-1] for lane in (known.lanes or {"": known.ready}).values() for place in lane])
        while some := list(islice(numbers, SLICE)):
            desk.do(Remove(via, "queue removed", some, _WAITING))
            yield
        desk.do(ForgetQueue(name))
    return OK

"""Faktory's administration: MUTATE, QUEUE and INFO.

MUTATE (faktory.md section 5.10) changes many jobs in slices of one event each.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from crossdock.engine.queries.jobs import indexed_states, job_by_number, jobs_of_jid, state_index
from crossdock.engine.queries.queues import listed_queues, oldest_since, queue_named, queues_by_name
from crossdock.engine.queries.records import totals
from crossdock.model.commands.admin import Bury, ForgetQueue, PauseQueues, Remove, Requeue, ResumeQueues
from crossdock.model.commands.core import Command
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.faktory.job import show
from crossdock.protocols.faktory.messages import OK, FilterBody, MutateBody, bulk, error
from crossdock.protocols.glob import OPEN_TOO_LONG, Glob
from crossdock.protocols.job_spec import NAME_BYTES
from crossdock.protocols.payload import compact
from crossdock.protocols.timestamps import stamp

if TYPE_CHECKING:
    from crossdock.protocols.faktory.protocol import FaktoryProtocol


SLICE: Final = 500
_BYTES_AS_A_JOB: Final = 4_096  #: examining this many bytes of payload counts as examining one more job

#: A class is tried at each byte of a job's text: many classes on a text of megabytes would take seconds.
REGEXP_AT_MOST: Final = 1_000
CLASSES_AT_MOST: Final = 32

TARGETS: Final = {"retries": State.RETRYING, "scheduled": State.SCHEDULED, "dead": State.DEAD}

_Act = Callable[[list[Number]], Command[int]]

#: A job, and whether it matches. A lookup that finds no job counts, too: a million unknown jids must not be one slice.
_Match: TypeAlias = tuple[Job | None, bool]
_NO_JOB: Final[_Match] = (None, False)


def _acts(via: str, target: State) -> dict[str, _Act]:
    where = frozenset({target})
    return {
        "clear": lambda numbers: Remove(via, "cleared", numbers, where),
        "discard": lambda numbers: Remove(via, "discarded", numbers, where),
        "kill": lambda numbers: Bury(via, numbers),
        "requeue": lambda numbers: Requeue(via, numbers),
    }


def mutate(dispatcher: Dispatcher, via: str, body: MutateBody) -> Slices | str:
    """The work, or the text of an error."""
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
    return _work(dispatcher, _acts(via, target)[body.cmd], target, wanted)


def _work(dispatcher: Dispatcher, act: _Act, target: State, wanted: FilterBody | None) -> Slices:
    for numbers in _slices(_matches(dispatcher, target, wanted)):
        dispatcher.do(act(numbers))
        yield
    return OK


def _slices(examined: Iterator[_Match]) -> Iterator[list[Number]]:
    """The matching jobs of each slice. A slice examines up to SLICE jobs, fewer if they are large."""
    numbers: list[Number] = []
    left = SLICE
    for job, matched in examined:
        left -= 1
        if job is not None:
            left -= len(job.payload) // _BYTES_AS_A_JOB
            if matched:
                numbers.append(job.number)
        if left <= 0:
            yield numbers
            numbers, left = [], SLICE
    yield numbers


def _matches(dispatcher: Dispatcher, target: State, wanted: FilterBody | None) -> Iterator[_Match]:
    state = dispatcher.state
    if wanted is not None and wanted.jids:  # then the other filters are ignored (faktory.md section 5.10)
        seen: set[str] = set()  # only known jids: a set of a million takes long to grow
        for jid in wanted.jids:
            yield _NO_JOB
            if jid not in seen and (named := list(jobs_of_jid(state, jid))):
                seen.add(jid)
                for job in named:
                    yield job, job.state is target
        return
    holds = _filter(wanted)
    for _, number in list(state_index(state, target)):
        found = job_by_number(state, number)
        yield (found, found.state is target and holds(found)) if found is not None else _NO_JOB


def _filter(wanted: FilterBody | None) -> Callable[[Job], bool]:
    if wanted is None or not (wanted.regexp or wanted.jobtype):
        return lambda job: True
    glob = Glob(wanted.regexp.encode()) if wanted.regexp else None
    kind = wanted.jobtype

    def holds(job: Job) -> bool:
        return (not kind or job.kind == kind) and (glob is None or glob.matches(compact(show(job))))

    return holds


# QUEUE (faktory.md section 5.11): pause, resume, remove, and the age of the oldest waiting job.


QUEUES_AT_MOST: Final = 1_000

#: Jobs of the Resqu batches in a queue are held until they are fetched.
_WAITING: Final = frozenset({State.READY, State.HELD})


@lru_cache(maxsize=1_024)
def names(body: bytes) -> tuple[str, ...]:
    """Cached, because workers send the same names with each FETCH. A name over the limit is cut one byte above it, so
    that it matches no queue."""
    return tuple(name[: NAME_BYTES + 1] for name in body.decode("utf-8", "replace").split(" "))


def queue(dispatcher: Dispatcher, via: str, body: bytes) -> Answer:
    if body.count(b" ") > QUEUES_AT_MOST:
        return error(f"QUEUE takes at most {QUEUES_AT_MOST} names")
    word, blank, rest = body.decode("utf-8", "replace").partition(" ")
    names = rest.split(" ") if blank else []
    sub = word.upper()
    if sub not in ("PAUSE", "RESUME", "REMOVE", "LATENCY"):
        return error(f"no such QUEUE subcommand: {sub}")
    if sub == "LATENCY":
        return _latency(dispatcher, names)
    if not names:
        return error("internal error")
    if sub == "REMOVE":
        return _remove(dispatcher, via, list(queues_by_name(dispatcher.state)) if names == ["*"] else names)
    chosen = None if names == ["*"] else names
    dispatcher.do(PauseQueues(chosen) if sub == "PAUSE" else ResumeQueues(chosen))
    return OK


def _latency(dispatcher: Dispatcher, names: list[str]) -> bytes:
    if names == ["*"]:
        return error("QUEUE LATENCY does not support wildcards")
    waits: dict[str, float] = {}
    for name in sorted(set(names)):
        since = oldest_since(dispatcher.state, name)
        waits[name] = 0 if since is None else max(0.0, dispatcher.now.wall - since)
    return bulk(msgspec.json.encode(waits))


def _remove(dispatcher: Dispatcher, via: str, names: list[str]) -> Slices:
    """Remove the waiting jobs, the name and the pause. Scheduled and retrying jobs stay and bring the name back."""
    for name in names:
        known = queue_named(dispatcher.state, name)
        if known is None:
            continue
        numbers = iter([sort_key[-1] for lane in (known.lanes or {"": known.ready}).values() for sort_key in lane])
        while some := list(islice(numbers, SLICE)):
            dispatcher.do(Remove(via, "queue removed", some, _WAITING))
            yield
        dispatcher.do(ForgetQueue(name))
    return OK


# INFO (faktory.md section 7): four top-level keys, map keys sorted, structs in upstream's order.


#: The Faktory release whose behaviour is implemented; clients parse it as semver.
VERSION = "1.10.0"


def info(protocol: "FaktoryProtocol", dispatcher: Dispatcher) -> bytes:
    state, now, ticked = dispatcher.state, dispatcher.now, dispatcher.ticked
    sizes = {job_state: len(index) for job_state, index in indexed_states(state).items()}
    queues = {queue.name: queue.waiting for queue in sorted(listed_queues(state), key=attrgetter("name"))}
    total = totals(state)
    time = stamp(now.wall)

    def task(enqueued: int, size: int) -> dict[str, object]:
        return {"cycles": ticked.passes, "enqueued": enqueued, "size": size, "wall_time_sec": ticked.seconds}

    return msgspec.json.encode(
        {
            "now": time,
            "server_utc_time": f"{time[11:19]} UTC",
            "faktory": {
                "queues": queues,
                "sets": {
                    "dead": sizes[State.DEAD],
                    "retries": sizes[State.RETRYING],
                    "scheduled": sizes[State.SCHEDULED],
                    "working": sizes[State.LEASED],
                },
                "tasks": {
                    "Busy": {"reaped": ticked.expired, "size": sizes[State.LEASED]},
                    "Dead": task(ticked.purged, sizes[State.DEAD]),
                    "Retries": task(ticked.retried, sizes[State.RETRYING]),
                    "Scheduled": task(ticked.scheduled, sizes[State.SCHEDULED]),
                    "Workers": {"reaped": protocol.workers.reaped, "size": len(protocol.workers.by_wid)},
                },
                "total_failures": total.failures,
                "total_processed": total.processed,
                "total_enqueued": sum(queues.values()),
                "total_queues": len(queues),
            },
            "server": {
                "description": "Crossdock",
                "faktory_version": VERSION,
                "uptime": int(now.steady - (now.steady if protocol.started is None else protocol.started)),
                "connections": protocol.connections,
                "command_count": protocol.commands,
                "used_memory_mb": protocol.memory_mb(),
            },
        }
    )

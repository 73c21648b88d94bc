"""A job's JSON text, written in one go: what `cjson.write(job.show(…))` says, for a tenth of the time.

A pop is mostly this. Strings are quoted by the standard library, which leaves `/` as it is; readers see no difference.
"""

from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Final

from crossdock.engine.qless import history
from crossdock.engine.state import EngineState
from crossdock.model.job import Extra, Job
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.protocols.redis.keys.values import TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import NAME_BYTES
from crossdock.protocols.redis.qless.call import Dialect
from crossdock.protocols.redis.qless.job import data, entry, expires, failure, queue, remaining, retries, show
from crossdock.protocols.redis.qless.job import state_name as state_of
from crossdock.protocols.redis.qless.job import worker as worker_of

#: Numbers that most jobs have for their retries and their priority, written.
_FEW: Final[dict[int | float, str]] = {number: cjson.number(number) for number in range(-100, 101)}

#: Up to this one: what happens to every job; names of those have a bound.
_DONE: Final = HistoryKind.DONE


def texts(state: EngineState, jobs: list[Job], dialect: Dialect, most: int | None = None) -> str:
    """A list of jobs; an empty one as the scripts write it. At most so many characters: one may be asked for twice."""
    if len(jobs) == 1:
        return f"[{text(state, jobs[0], dialect)}]"
    if not jobs:
        return "[]" if dialect.renamed else "{}"
    if most is None:
        return f"[{','.join([text(state, job, dialect) for job in jobs])}]"
    found: list[str] = []
    for job in jobs:
        found.append(text(state, job, dialect))
        most -= len(found[-1])
        if most < 0:
            raise TOO_LARGE
    return f"[{','.join(found)}]"


def text(state: EngineState, job: Job, dialect: Dialect) -> str:
    if dialect.in_scripts:
        return cjson.write(show(state, job, dialect))
    jid, extra, lease = job.jid, job.extra, job.lease
    protocol_data = extra.protocol_data if extra is not None else None
    lines: Sequence[HistoryEntry]
    if (
        lease is not None and lease.until is not None and extra is not None and type(protocol_data) is QlessData
    ):  # it was popped
        its_data, lines = job.payload.decode("utf-8", "surrogateescape"), extra.history
        its_queue, its_state, its_worker = (
            protocol_data.queue or job.queue,
            protocol_data.state or "running",
            lease.worker,
        )
        its_retries, its_end = protocol_data.retries, protocol_data.expires
        left = its_retries - job.failures if type(its_retries) is int else remaining(job)
    else:
        its_data, lines = data(job), history.lines(job)
        its_queue, its_state, its_worker = queue(job), state_of(job), worker_of(job)
        its_retries, its_end, left = retries(job), expires(job), remaining(job)
    error = dependents = "{}"
    named = ""
    middle = None
    if extra is not None:
        if extra.error is not None:
            error = cjson.write(failure(job))
        if extra.tags or extra.links is not None or (type(protocol_data) is QlessData and protocol_data.spawned_from):
            middle = _with_rare(state, job, extra, its_queue, its_state, dialect)
    if middle is None:
        write = _middle if len(job.kind) <= NAME_BYTES else _parts
        middle = write(job.kind, its_queue, its_state, dialect.old, jid in state.qless.watched)
    if state.dependents and (waiting := state.dependents.get(job.number)):
        dependents = _jids(state, waiting)
    if dialect.throttled:
        named = f'"throttles":{cjson.write(list(extra.throttles) if extra is not None else [])},'
    priority = dialect.turned(job.priority) if dialect.smaller_first else job.priority
    return (
        f'{{"jid":{quoted(jid)},"retries":{_FEW.get(its_retries) or cjson.number(its_retries)},'
        f'"data":{quoted(its_data)},"failure":{error},"expires":{cjson.number(its_end)},"remaining":{left},{middle}'
        f'"history":{_lines(lines, dialect)},{named}"dependents":{dependents},'
        f'"priority":{_FEW.get(priority) or cjson.number(priority)},"worker":{quoted(its_worker)}}}'
    )


def _parts(
    kind: str,
    queue: str,
    state: str,
    old: bool,
    tracked: bool,
    spawned: str = "false",
    depends_on: str = "{}",
    tags: str = "{}",
) -> str:
    """What a job shows between `remaining` and `history`."""
    first = "" if old else f'"spawned_from_jid":{spawned},'
    return (
        f'{first}"dependencies":{depends_on},"klass":{quoted(kind)},"tracked":{"true" if tracked else "false"},'
        f'"tags":{tags},"queue":{quoted(queue)},"state":"{state}",'
    )


#: Of most jobs these are names, which are few and have a bound.
_middle = lru_cache(maxsize=4_096)(_parts)


def _with_rare(state: EngineState, job: Job, extra: Extra, queue: str, job_state: str, dialect: Dialect) -> str:
    spawned, protocol_data = "false", extra.protocol_data
    if type(protocol_data) is QlessData and protocol_data.spawned_from:
        spawned = quoted(protocol_data.spawned_from)
    depends_on = _jids(state, extra.links.depends_on) if extra.links is not None and extra.links.depends_on else "{}"
    tags = cjson.write(list(extra.tags))
    return _parts(job.kind, queue, job_state, dialect.old, job.jid in state.qless.watched, spawned, depends_on, tags)


def _jids(state: EngineState, numbers: "tuple[int, ...] | dict[int, None]") -> str:
    return cjson.write(sorted(state.jobs[number].jid for number in numbers if number in state.jobs))


def _lines(lines: Sequence[HistoryEntry], dialect: Dialect) -> str:
    if not lines:
        return "{}"
    queue = "queue" if dialect.renamed else "q"
    written = [
        _step(one.what, one.when, one.name, queue) if one.what <= _DONE else cjson.write(entry(one, dialect))
        for one in lines
    ]
    return f"[{','.join(written)}]"


@lru_cache(maxsize=4_096)
def _step(what: HistoryKind, when: float, name: str, queue: str) -> str:
    """What happens to every job. Times are whole seconds and names are few, so many jobs have the same."""
    if what is HistoryKind.PUT:
        return f'{{"when":{when:.14g},"{queue}":{quoted(name)},"what":"put"}}'
    if what is HistoryKind.POPPED:
        return f'{{"when":{when:.14g},"what":"popped","worker":{quoted(name)}}}'
    return f'{{"when":{when:.14g},"what":"done"}}'

"""A job's JSON text, written in one go: what `cjson.write(job.show(…))` says, for a tenth of the time.

A pop is mostly this. Strings are quoted by the standard library, which leaves `/` as it is; readers see no difference.
"""

from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Final

from crossdock.engine.memory import Memory
from crossdock.engine.standing import face_of
from crossdock.model.faces import Entry, What
from crossdock.model.job import Job
from crossdock.wire.redis.qless import cjson
from crossdock.wire.redis.qless.dialect import Dialect
from crossdock.wire.redis.qless.job import data, entry, expires, failure, history, queue, remaining, retries, show
from crossdock.wire.redis.qless.job import state as state_of
from crossdock.wire.redis.qless.job import worker as worker_of

#: Numbers that most jobs have for their retries and their priority, written.
_FEW: Final[dict[int | float, str]] = {number: cjson.number(number) for number in range(-100, 101)}

#: What happens to every job; names of those have a bound.
_STEPS: Final = frozenset({What.PUT, What.POPPED, What.DONE})


def texts(memory: Memory, jobs: list[Job], dialect: Dialect) -> str:
    """A list of jobs; an empty one as the scripts write it."""
    if len(jobs) == 1:
        return f"[{text(memory, jobs[0], dialect)}]"
    if not jobs:
        return "[]" if dialect.renamed else "{}"
    return f"[{','.join([text(memory, job, dialect) for job in jobs])}]"


def text(memory: Memory, job: Job, dialect: Dialect) -> str:
    if dialect.in_scripts:
        return cjson.write(show(memory, job, dialect))
    jid, extra, face, lease = job.jid, job.extra, face_of(job), job.lease
    lines: Sequence[Entry]
    if extra is not None and face is not None and lease is not None and lease.until is not None:  # it was popped
        its_data, lines = job.payload.decode("utf-8", "surrogateescape"), extra.history
        its_queue, its_state, its_worker = face.queue or job.queue, face.state or "running", lease.worker
        its_retries, its_end = face.retries, face.expires
        left = its_retries - job.failures if type(its_retries) is int else remaining(job)
    else:
        its_data, lines = data(job), history(job)
        its_queue, its_state, its_worker = queue(job), state_of(job), worker_of(job)
        its_retries, its_end, left = retries(job), expires(job), remaining(job)
    priority = dialect.turned(job.priority) if dialect.smaller_first else job.priority
    tags = error = needs = dependents = "{}"
    if extra is not None:
        if extra.tags:
            tags = cjson.write(list(extra.tags))
        if extra.error is not None:
            error = cjson.write(failure(job))
        if extra.links is not None and extra.links.needs:
            needs = _jids(memory, extra.links.needs)
    if memory.needed_by and (needed_by := memory.needed_by.get(job.number)):
        dependents = _jids(memory, needed_by)
    spawned = ""
    if not dialect.old:
        spawned = '"spawned_from_jid":false,'
        if face is not None and face.spawned_from:
            spawned = f'"spawned_from_jid":{quoted(face.spawned_from)},'
    named = ""
    if dialect.throttled:
        named = f'"throttles":{cjson.write(list(extra.throttles) if extra is not None else [])},'
    return (
        f'{{"jid":{quoted(jid)},"retries":{_FEW.get(its_retries) or cjson.number(its_retries)},'
        f'"data":{quoted(its_data)},"failure":{error},"expires":{cjson.number(its_end)},"remaining":{left},{spawned}'
        f'"dependencies":{needs},"klass":{quoted(job.kind)},"tracked":{"true" if jid in memory.watched else "false"},'
        f'"tags":{tags},"queue":{quoted(its_queue)},"state":"{its_state}","history":{_lines(lines, dialect)},{named}'
        f'"dependents":{dependents},"priority":{_FEW.get(priority) or cjson.number(priority)},'
        f'"worker":{quoted(its_worker)}}}'
    )


def _jids(memory: Memory, numbers: "tuple[int, ...] | dict[int, None]") -> str:
    return cjson.write(sorted(memory.jobs[number].jid for number in numbers if number in memory.jobs))


def _lines(lines: Sequence[Entry], dialect: Dialect) -> str:
    queue = "queue" if dialect.renamed else "q"
    written = [
        _step(one.what, one.when, one.name, queue) if one.what in _STEPS else cjson.write(entry(one, dialect))
        for one in lines
    ]
    return f"[{','.join(written)}]" if written else "{}"


@lru_cache(maxsize=4_096)
def _step(what: What, when: float, name: str, queue: str) -> str:
    """Times are whole seconds and names are few, so many jobs have the same."""
    if what is What.PUT:
        return f'{{"when":{when:.14g},"{queue}":{quoted(name)},"what":"put"}}'
    if what is What.POPPED:
        return f'{{"when":{when:.14g},"what":"popped","worker":{quoted(name)}}}'
    return f'{{"when":{when:.14g},"what":"done"}}'

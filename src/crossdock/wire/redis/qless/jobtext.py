"""A job's JSON text, written in one go: what `cjson.write(job.show(…))` says, for a tenth of the time.

A pop is mostly this. Strings are quoted by the standard library, which leaves `/` as it is; readers see no difference.
"""

from json.encoder import encode_basestring as quoted

from crossdock.engine.memory import Memory
from crossdock.engine.standing import face_of, needs_of
from crossdock.model.faces import Entry, What
from crossdock.model.job import Job
from crossdock.wire.redis.qless import cjson
from crossdock.wire.redis.qless.dialect import Dialect
from crossdock.wire.redis.qless.job import data, entry, expires, failure, history, queue, remaining, retries, show
from crossdock.wire.redis.qless.job import state as state_of
from crossdock.wire.redis.qless.job import worker as worker_of


def texts(memory: Memory, jobs: list[Job], dialect: Dialect) -> str:
    """A list of jobs; an empty one as the scripts write it."""
    return f"[{','.join(text(memory, job, dialect) for job in jobs)}]" if jobs else "[]" if dialect.renamed else "{}"


def text(memory: Memory, job: Job, dialect: Dialect) -> str:
    if dialect.in_scripts:
        return cjson.write(show(memory, job, dialect))
    extra, face = job.extra, face_of(job)
    needs = needs_of(job)
    needed_by = memory.needed_by.get(job.number) if memory.needed_by else None
    tags = cjson.write(list(extra.tags)) if extra is not None and extra.tags else "{}"
    error = cjson.write(failure(job)) if extra is not None and extra.error is not None else "{}"
    spawned = ""
    if not dialect.old:
        origin = quoted(face.spawned_from) if face is not None and face.spawned_from else "false"
        spawned = f'"spawned_from_jid":{origin},'
    named = ""
    if dialect.throttled:
        named = f'"throttles":{cjson.write(list(extra.throttles) if extra is not None else [])},'
    return (
        f'{{"jid":{quoted(job.jid)},"retries":{cjson.number(retries(job))},"data":{quoted(data(job))},'
        f'"failure":{error},"expires":{cjson.number(expires(job))},"remaining":{remaining(job)},{spawned}'
        f'"dependencies":{_jids(memory, needs) if needs else "{}"},"klass":{quoted(job.kind)},'
        f'"tracked":{"true" if job.jid in memory.watched else "false"},"tags":{tags},"queue":{quoted(queue(job))},'
        f'"state":"{state_of(job)}","history":{_lines(history(job), dialect)},{named}'
        f'"dependents":{_jids(memory, needed_by) if needed_by else "{}"},'
        f'"priority":{cjson.number(dialect.turned(job.priority))},"worker":{quoted(worker_of(job))}}}'
    )


def _jids(memory: Memory, numbers: "tuple[int, ...] | dict[int, None]") -> str:
    return cjson.write(sorted(memory.jobs[number].jid for number in numbers if number in memory.jobs))


def _lines(lines: list[Entry], dialect: Dialect) -> str:
    return f"[{','.join([_line(one, dialect) for one in lines])}]" if lines else "{}"


def _line(one: Entry, dialect: Dialect) -> str:
    what = one.what
    if what is What.PUT:
        queue = "queue" if dialect.renamed else "q"
        return f'{{"when":{one.when:.14g},"{queue}":{quoted(one.name)},"what":"put"}}'
    if what is What.POPPED:
        return f'{{"when":{one.when:.14g},"what":"popped","worker":{quoted(one.name)}}}'
    if what is What.DONE:
        return f'{{"when":{one.when:.14g},"what":"done"}}'
    return cjson.write(entry(one, dialect))

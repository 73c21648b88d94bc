"""What the PHP fork has beyond the unified script (protocol page, qless 11)."""

from collections.abc import Callable
from itertools import islice
from math import inf
from typing import Any, Final

from crossdock.model.keys import ChangeMembers, Kind
from crossdock.model.moves import CatchUp, LeaseThese, Pop
from crossdock.model.states import State
from crossdock.wire.redis.qless import cjson, config, job_lists, jobtext, workers
from crossdock.wire.redis.qless.call import VIA, Call, Reply
from crossdock.wire.redis.qless.given import Raised, index, number
from crossdock.wire.redis.qless.pages import spanned
from crossdock.wire.redis.qless.patterns import find

TOPICS: Final = b"ql:topics"


def pop_by_jid(call: Call) -> Reply:
    """That very job, if it is ready; a lease of it that ran out is looked after first."""
    queue = call.queue()
    jid = call.require(1, 'Pop(): Arg "jid" missing')
    worker = call.require(2, 'Pop(): Arg "worker" missing')
    call.writes()
    found, term = call.job(jid), config.heartbeat(call.memory, queue)
    call.desk.do(Pop(VIA, call.t, queue, worker, 0, term))
    if found is not None and found.queue == queue and found.lease is not None:
        call.desk.do(CatchUp(VIA, queue, call.t, inf, intervals=False, due=False, only=found.number))
    if found is None or found.queue != queue or found.state is not State.READY:
        return "{}"
    jobs = call.desk.do(LeaseThese(VIA, call.t, queue, worker, (found.number,), 0, term))
    call.grant(jobs)
    return jobtext.texts(call.memory, jobs, call.dialect)


def jobs(call: Call) -> Reply:
    """As the unified one's, with a queue always, and the waiting."""
    word, queue = call.text(0, 'Jobs(): Arg "state" missing'), call[1]
    offset = index(call[2], 'Jobs(): Arg "offset" not a number: ', 0)
    count = index(call[3], 'Jobs(): Arg "count" not a number: ', 25)
    if word == "complete":
        if queue == "":
            return job_lists.jobs(call.also(word, *call.rest(2)))
        newest = (call.memory.jobs[each[2]] for each in reversed(call.memory.completed))
        here = (one.jid for one in newest if one.queue == queue)
        return list(islice(here, max(0, offset), max(0, offset) + max(0, count)))
    if word != "waiting":
        return job_lists.jobs(call)
    known = call.memory.queues.get(call.text(1, 'Jobs(): Arg "queue" missing'))
    if known is None:
        return []
    page = spanned(len(known.ready), offset, offset + count - 1)
    return [call.memory.jobs[place[4]].jid for place in known.ready.islice(page.start or 0, page.stop)]


def some_workers(call: Call) -> Reply:
    """now [worker] [first] [last]"""
    if call[0]:
        return workers.workers(call.also(call[0]))
    rows: Any = cjson.read(str(workers.workers(call.also())))
    listed = rows if isinstance(rows, list) else []
    first = index(call[1], 'Workers(): Arg "start" not a number: ', 0)
    last = index(call[2], 'Workers(): Arg "last" not a number: ', -1)
    return cjson.write(listed[spanned(len(listed), first, last)])


def workers_count(call: Call) -> Reply:
    workers.workers(call.also())
    return len(call.memory.workers.seen)


def worker_jobs(call: Call) -> Reply:
    least = number(call[1], 'WorkerJobs(): Arg "minScore" not a number: ', 0.0)
    given = call.memory.workers.given.get(call.require(0, 'WorkerJobs(): Arg "worker" missing'), {})
    held = sorted((until, jid) for jid, until in given.items() if not least or until >= least)
    return cjson.write([jid for _, jid in held])


def tracked(call: Call) -> Reply:
    return cjson.write([jid for _, jid in sorted((t, jid) for jid, t in call.memory.watched.items())])


def tags(call: Call) -> Reply:
    """now cursor count"""
    first = index(call[0], 'Tags(): Arg "cursor" not a number: ', 0)
    count = index(call[1], 'Tags(): Arg "count" not a number: ', 25)
    names = [tag for _, tag in call.memory.tags.top]
    return cjson.write(names[spanned(len(names), first, first + count - 1)])


def deregister(call: Call) -> Reply:
    known = sum(1 for name in dict.fromkeys(call.rest(0)) if name in call.memory.workers.seen)
    workers.deregister(call)
    return known


def subscription(call: Call) -> Reply:
    queue, word, topic = call.queue(), call[1], call[2]
    key = TOPICS + queue.encode()
    acts: dict[str, Callable[[], Any]] = {
        "get": lambda: [key.decode()] if _topics(call, key) else [],
        "all": lambda: _all_topics(call),
        "exists": lambda: _topic(topic) in _topics(call, key),
        "remove": lambda: _remove(call, key, _topic(topic)),
        "add": lambda: _add(call, key, _topic(topic), queue.encode()),
    }
    if word is None:
        raise Raised('Tag(): Arg "command" must be "add", "remove", "get", "all", "exists"')
    if word not in acts:
        raise Raised('Tag(): First argument must be "add", "remove", "get" or "exists"')
    return cjson.write(acts[word]())


def _topic(topic: str | None) -> bytes:
    if topic is None:
        raise Raised("Lua redis lib command arguments must be strings or integers")
    return topic.encode("utf-8", "surrogateescape")


def _topics(call: Call, key: bytes) -> dict[bytes, bytes]:
    found = find(call, Kind.HASH, key)
    return dict(found.data) if found is not None else {}


def _all_topics(call: Call) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in [key for key in call.memory.keys.entries if key.startswith(TOPICS)]:
        for topic, queue in _topics(call, key).items():
            found.setdefault(topic.decode("utf-8", "surrogateescape"), []).append(queue.decode())
    return found


def _remove(call: Call, key: bytes, topic: bytes) -> bool:
    known = topic in _topics(call, key)
    call.desk.do(ChangeMembers(key, Kind.HASH, drop=[topic]))
    return known


def _add(call: Call, key: bytes, topic: bytes, queue: bytes) -> list[str]:
    if topic not in _topics(call, key):
        call.refuse_if_no_place((key, topic, queue))
    call.desk.do(ChangeMembers(key, Kind.HASH, [(topic, queue)]))
    return [value.decode() for value in _topics(call, key).values()]


#: In place of the unified script's, and besides.
COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "popByJid": pop_by_jid,
    "jobs": jobs,
    "workers": some_workers,
    "workersCount": workers_count,
    "workerJobs": worker_jobs,
    "tracked": tracked,
    "tags": tags,
    "subscription": subscription,
    "worker.deregister": deregister,
}

"""The commands of the PHP fork that the unified script does not have, or has otherwise (qless.md section 11)."""

import itertools
from collections.abc import Callable
from math import inf, nextafter
from typing import Any, Final

from crossdock.engine.qless import queries
from crossdock.engine.qless.catch_up import GRACE_S
from crossdock.engine.queries.keyspace import all_keys, live_entry
from crossdock.engine.queries.queues import is_paused, page_of_ready, queue_named
from crossdock.engine.queries.records import leases_of_worker, workers_seen
from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.model.commands.qless import CatchUp, LeaseThese, Pop
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.redis.keys.values import pattern as compiled
from crossdock.protocols.redis.qless import cjson, cjson_reader, job, job_lists, settings, settle
from crossdock.protocols.redis.qless import queues as qless_queues
from crossdock.protocols.redis.qless.arguments import QlessError, span
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.job_lists import Reversed, spanned
from crossdock.protocols.redis.qless.queue_patterns import find
from crossdock.protocols.redis.resp.decode import integer
from crossdock.protocols.redis.resp.values import Error
from crossdock.protocols.redis.views import key_space_full

TOPICS: Final = b"ql:topics"

#: Names that one call of `tags` returns.
TAGS_AT_MOST: Final = 10_000

#: Old entries that one `complete` removes from the list of its queue.
_DROPPED_AT_MOST: Final = 1_000

#: Reply of popByJid without a job.
_NO_JOB: Final = "[{}]"

#: Redis' error for a missing argument.
_NO_TEXT: Final = "Lua redis lib command arguments must be strings or integers"


def pop_by_jid(call: Call) -> Reply:
    """Lease this job if it is waiting in the queue."""
    queue = call.queue()
    jid = call.require(1, 'Pop(): Arg "jid" missing')
    worker = call.require(2, 'Pop(): Arg "worker" missing')
    call.check_time()
    if is_paused(call.state, queue):
        return _NO_JOB
    found = call.job(jid)
    if found is None:
        raise QlessError("bad argument #1 to 'unpack' (table expected, got nil)")
    if found.queue != queue or found.state is not State.READY or job.state_name(found) != "waiting":
        _warn(call, found, queue)
        return _NO_JOB
    term = queries.heartbeat(call.state, queue)
    call.dispatcher.do(Pop(VIA, call.t, queue, worker, 0, term))  # registers the worker
    jobs = call.dispatcher.do(LeaseThese(VIA, call.t, queue, worker, (found.number,), 0, term))
    call.grant(jobs)
    return job.texts(call.state, jobs, call.dialect)


def _warn(call: Call, found: Job, queue: str) -> None:
    """Start the grace period of a job whose lease expired. Only a pop leases the job to another worker."""
    warned = found.extra is not None and found.extra.warned
    graced = queries.setting(call.state, "grace-period", GRACE_S) > 0
    if found.queue == queue and found.lease is not None and not warned and graced:
        call.dispatcher.do(CatchUp(VIA, queue, call.t, inf, intervals=False, due=False, only=found.number))


def complete(call: Call) -> Reply:
    """The fork keeps a list of completed jobs per queue, jobs that advanced to another queue included."""
    queue = call[2] or ""
    key = _completed(queue)
    done = find(call, Kind.SORTED, key)
    reply = settle.complete(call)
    most = queries.setting(call.state, "jobs-history-count", float(settings.DEFAULTS["jobs-history-count"]))
    oldest = call.t - queries.setting(call.state, "jobs-history", float(settings.DEFAULTS["jobs-history"]))
    order = done.data.order if done is not None else ()
    beyond = len(order) - max(0.0, most)
    drop: list[bytes] = []
    for at, (score, member) in enumerate(itertools.islice(order, _DROPPED_AT_MOST)):
        if not 0 <= score <= oldest and at >= beyond:
            break
        drop.append(member)
    member = (call[0] or "").encode()
    full = key_space_full(call.state, call.dialect.keys_bytes, (key, member))
    put = [(member, call.t)] if full is None else []
    call.dispatcher.do(ChangeMembers(key, Kind.SORTED, put, [each for each in drop if each != member]))
    return reply


def _completed(queue: str) -> bytes:
    return b"ql:q:%b-completed" % queue.encode("utf-8", "surrogateescape")


def jobs(call: Call) -> Reply:
    """Like `jobs` of the unified script, but always with a queue, and with the state `waiting`."""
    word, queue = call.text(0, 'Jobs(): Arg "state" missing'), call[1]
    offset, count = span(call[2], call[3], 'Jobs(): Arg "%s" not a number: ', ("offset", "count"))
    if word == "complete" and queue == "":
        return job_lists.jobs(call.with_args(word, *call.rest(2)))
    if word == "complete":
        done = find(call, Kind.SORTED, _completed(call.queue(1)))
        newest = Reversed(done.data.order if done is not None else [])
        # The script takes the count for the end index.
        page = newest[spanned(len(newest), offset, count - 1)] if count else []
        return [member.decode() for _, member in page]
    if word != "waiting":
        return job_lists.jobs(call)
    known = queue_named(call.state, call.text(1, 'Jobs(): Arg "queue" missing'))
    if known is None or not count:
        return []
    page = spanned(len(known.ready), offset, offset + count - 1)
    return [job.jid for job in page_of_ready(call.state, known, page.start or 0, page.stop)]


def some_workers(call: Call) -> Reply:
    """now [worker] [first] [last]"""
    if call[0]:
        return qless_queues.workers(call.with_args(call[0]))
    rows: Any = cjson.read(str(qless_queues.workers(call.with_args())))
    listed = rows if isinstance(rows, list) else []
    first, last = _rank(call[1], 0), _rank(call[2], -1)
    return cjson.write(listed[spanned(len(listed), first, last)])


def _rank(text: str | None, default: int) -> int:
    """A rank, which the script passes to Redis unchanged."""
    found = default if text is None else integer(text.encode())
    if found is None:
        raise QlessError("value is not an integer or out of range")
    return found


def workers_count(call: Call) -> Reply:
    """All known workers. Only `workers` forgets inactive ones."""
    return len(workers_seen(call.state))


def worker_jobs(call: Call) -> Reply:
    worker = call[0]
    if worker is None:
        return "null"
    text = "-inf" if call[1] is None else call[1]
    least = cjson_reader.number(text.removeprefix("(") or "0")
    if least is None or least != least:
        raise QlessError("min or max is not a float")
    least = nextafter(least, inf) if text.startswith("(") else least
    leases = leases_of_worker(call.state, worker)
    held = sorted((until, jid) for jid, until in leases.items() if until >= least)
    return cjson.write([jid for _, jid in held])


def tracked(call: Call) -> Reply:
    return cjson.write([jid for _, jid in sorted((t, jid) for jid, t in queries.tracked_jids(call.state).items())])


def tags(call: Call) -> Reply:
    """now cursor count: one step of a SCAN over the tags. The reply does not have the next cursor."""
    cursor, count = call[0], call[1]
    if cursor is None or count is None:
        raise QlessError(_NO_TEXT)
    begin, many = integer(cursor.encode() or b"0"), integer(count.encode())
    if begin is None or begin < 0:
        raise QlessError("invalid cursor")
    if many is None:
        raise QlessError("value is not an integer or out of range")
    if many < 1:
        raise QlessError("syntax error")
    names = itertools.islice(queries.jobs_by_tag(call.state), begin, begin + min(many, TAGS_AT_MOST))
    return cjson.write([name.replace("ql:t:", "") for name in names])


def deregister(call: Call) -> Reply:
    known = sum(1 for name in dict.fromkeys(call.rest(0)) if name in workers_seen(call.state))
    qless_queues.deregister(call)
    return known


def subscription(call: Call) -> Reply:
    queue, word, topic = call[0] or "", call[1], call[2]
    key = TOPICS + queue.encode()
    acts: dict[str, Callable[[], Any]] = {
        "get": lambda: [found.decode("utf-8", "surrogateescape") for found in _keys(call, key)],
        "all": lambda: _all_topics(call),
        "exists": lambda: _topic(topic) in _topics(call, key),
        "remove": lambda: _remove(call, key, _topic(topic)),
        "add": lambda: _add(call, key, _topic(topic), queue.encode()),
    }
    if word is None:
        raise QlessError('Tag(): Arg "command" must be "add", "remove", "get", "all", "exists"')
    if word not in acts:
        raise QlessError('Tag(): First argument must be "add", "remove", "get" or "exists"')
    call.queue()  # checks the name
    return cjson.write(acts[word]())


def _topic(topic: str | None) -> bytes:
    if topic is None:
        raise QlessError(_NO_TEXT)
    return topic.encode("utf-8", "surrogateescape")


def _keys(call: Call, pattern: bytes) -> list[bytes]:
    """The keys that match. The script uses KEYS, so the name of a queue may be a pattern."""
    try:
        glob = compiled(pattern)
    except Error as error:
        raise QlessError(str(error).removeprefix("ERR ")) from error
    state, now = call.state, call.dispatcher.now
    return sorted(
        key
        for key in all_keys(state)
        if key.startswith(TOPICS) and glob.matches(key) and live_entry(state, key, now) is not None
    )


def _topics(call: Call, key: bytes) -> dict[bytes, bytes]:
    found = find(call, Kind.HASH, key)
    return dict(found.data) if found is not None else {}


def _all_topics(call: Call) -> dict[str, dict[str, str]]:
    """Queues by topic. The script labels a queue with the index of its key and the index of the topic, joined. Clients
    ignore the labels, so a label that is taken is replaced by a free one."""
    found: dict[str, dict[str, str]] = {}
    for first, key in enumerate(_keys(call, TOPICS + b"*"), 1):
        for second, (topic, queue) in enumerate(_topics(call, key).items(), 1):
            queues = found.setdefault(topic.decode("utf-8", "surrogateescape"), {})
            free = (label for at in itertools.count(first) if (label := f"{at}{second}") not in queues)
            queues[next(free)] = queue.decode()
    return found


def _remove(call: Call, key: bytes, topic: bytes) -> bool:
    known = topic in _topics(call, key)
    call.dispatcher.do(ChangeMembers(key, Kind.HASH, drop=[topic]))
    return known


def _add(call: Call, key: bytes, topic: bytes, queue: bytes) -> list[str]:
    known = _topics(call, key)
    if topic not in known and topic not in known.values():  # the script compares with the values as well
        call.refuse_if_key_space_full((key, topic, queue))
        call.dispatcher.do(ChangeMembers(key, Kind.HASH, [(topic, queue)]))
    return [value.decode() for value in _topics(call, key).values()]


#: Commands that replace those of the unified script, and additional ones.
COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "popByJid": pop_by_jid,
    "complete": complete,
    "jobs": jobs,
    "workers": some_workers,
    "workersCount": workers_count,
    "workerJobs": worker_jobs,
    "tracked": tracked,
    "tags": tags,
    "subscription": subscription,
    "worker.deregister": deregister,
}

"""Commands that name a job and need nobody's lease: put, cancel, priority, depends, tags, tracking, history, get."""

from math import floor, isfinite
from typing import Any, Final

from msgspec.structs import replace

from crossdock.engine.job_view import dependencies_of, qless_data
from crossdock.engine.qless import queries
from crossdock.engine.qless.put import open_needs
from crossdock.engine.queries.jobs import dependents_of, indexed_jobs, job_by_number, unmet_dependencies
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Cancel, EditDependencies, EditTags, Note, Put, SetPriority, Unwatch, Watch
from crossdock.model.job import Number
from crossdock.model.protocol_data import AS_CONFIGURED, HistoryEntry, HistoryKind, Tag
from crossdock.model.records import OF_QUEUE
from crossdock.model.states import State
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import cjson, cjson_reader, job, notifications
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    Raised,
    Refused,
    asserted,
    data,
    decoded,
    filled,
    finite,
    is_blank,
    jids,
    length,
    listed,
    name,
    options,
    refuse_needs,
    refuse_tags,
    span,
    tags,
)
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.job_lists import Reversed, ranged, spanned

#: Of what is written into a job's history by hand: a hundred of them are kept, and shown with the job.
LOG_AT_MOST: Final = 65_536

_PUT: Final = ("Queue(): no queue name provided", 'Put(): Arg "jid" missing', 'Put(): Arg "klass" missing')
_NOT_A_NUMBER: Final = 'Tag(): Arg "%s" not a number: '
_DELAY: Final = 'Put(): Arg "delay" not a number: '


def put(call: Call) -> Reply:
    """now [worker] queue jid klass data delay [option value]…"""
    first = 0 if call.dialect.old else 1
    queue, jid, kind = call.names(first, _PUT, 2)
    payload, form = data(call[first + 3], 'Put(): Arg "data" missing or not JSON: ')
    delay = call.number(first + 4, _DELAY)
    if not isfinite(delay):
        raise Raised(f"{_DELAY}{call[first + 4]}")
    worker = None if call.dialect.old else call[0]
    head = (VIA, call.t, worker, jid, queue, kind, payload, form, delay)
    more = call.rest(first + 5)
    if not more and not call.dialect.throttled and not call.dialect.php:
        call.writes()
        command = Put(*head, old=call.dialect.old, sticky=call.dialect.in_scripts)
    else:
        command = _put(call, head, options(more))
    call.refuse_if_full()
    call.dispatcher.do(command)
    return jid


def _put(call: Call, head: tuple[Any, ...], given: dict[str, str]) -> Put:
    """With what a put says behind its delay, or what its dialect says for it."""
    jid, queue, delay = head[3], head[4], head[8]
    try:
        wanted = read_options(call, jid, queue, given, delayed=delay > 0)
    except Refused:
        raise
    except Raised:
        half_done(call, jid, queue, given)
        raise
    call.writes()
    command = Put(*head, *wanted)
    command = replace(command, keeps=call.dialect.throttled, old=call.dialect.old, sticky=call.dialect.in_scripts)
    if call.dialect.php:
        named = unblanked(call, jid) if command.tags is None else command.tags
        command = replace(command, tags=named, backoff=backoff(given))
    return command


def requeue(call: Call) -> Reply:
    jid = call.jid(2)
    if call.job(jid) is None:
        raise Raised(f"Requeue(): Job {jid} does not exist")
    return put(call)


def get(call: Call) -> Reply:
    found = call.job(call.jid())
    return None if found is None else job.text(call.state, found, call.dialect)


def multiget(call: Call) -> Reply:
    found = [one for jid in call.rest(0) if (one := call.job(jid)) is not None]
    return job.texts(call.state, found, call.dialect, REPLY_BYTES)


def cancel(call: Call) -> Reply:
    """All or none: whoever needs one of them must be named, too."""
    names = call.rest(0)
    state, named = call.state, frozenset(names)
    for jid in names:
        found = call.job(jid)
        if found is not None:
            dependents = sorted(each.jid for each in indexed_jobs(state, dependents_of(state, found)))
            unnamed = next((each for each in dependents if each not in named), None)
            if unnamed is not None:
                text = f"{jid} is a dependency of {unnamed} but is not mentioned to be canceled"
                raise Raised(f"Cancel(): {text}")
    call.writes()
    along = frozenset(found.number for jid in names if (found := call.job(jid)) is not None)
    for jid in names:
        found = call.job(jid)
        if found is None:
            for notice in notifications.canceled_unknown(jid, queries.tracked_jids(state)):
                call.publish(*notice)
        elif found.state is not State.COMPLETE:
            call.dispatcher.do(Cancel(VIA, call.t, found.number, along, call.dialect.in_scripts))
    return names


def priority(call: Call) -> Reply:
    jid = call.jid()
    value = finite(call[1], 'Priority(): Arg "priority" missing or not a number: ')
    found = call.job(jid)
    if found is None:
        text = "Queue(): no queue name provided" if call.dialect.nameless else f"Priority(): Job {jid} does not exist"
        raise Denied(text)
    call.writes()
    call.dispatcher.do(SetPriority(VIA, call.t, found.number, call.dialect.turned(cjson_reader.whole(value))))
    return cjson_reader.truncated(value)


def depends(call: Call) -> Reply:
    jid = call.jid()
    word = call[1]
    if word is None:
        raise Raised('Depends(): Arg "command" missing')
    found = call.job(jid)
    if found is None or found.state is not State.BLOCKED:
        shown = "false" if found is None else job.state_name(found)
        raise Denied(f"Depends(): Job {jid} not in the depends state: {shown}")
    names, state = call.rest(2), call.state
    before, unmet = dependencies_of(found), unmet_dependencies(state, found)
    if word == "on":
        depends_on = tuple(dict.fromkeys((*unmet, *open_needs(state, names, jid, found.number))))
        refuse_needs(len(depends_on))
    elif word == "off":
        depends_on = () if names[:1] == ["all"] else _but(state, unmet, frozenset(names))
    else:
        raise Raised('Depends(): Argument "command" must be "on" or "off"')
    call.writes()
    if depends_on != before:
        call.dispatcher.do(EditDependencies(VIA, 0.0 if call.dialect.in_scripts else call.t, found.number, depends_on))
    return 1


def _but(state: EngineState, depends_on: tuple[Number, ...], names: frozenset[str]) -> tuple[Number, ...]:
    """Those that have none of these names. One that is gone was lost, and its dependents are about to learn it."""
    return tuple(
        dependency
        for dependency in depends_on
        if (job := job_by_number(state, dependency)) is None or job.jid not in names
    )


def tag(call: Call) -> Reply:
    word = call[0]
    if word is None:
        raise Raised('Tag(): Arg "command" must be "add", "remove", "get" or "top"')
    if word in ("add", "remove"):
        return _edit_tags(call, word)
    if word == "get":
        text = call.text(1, 'Tag(): Arg "tag" missing')
        offset, count = span(call[2], call[3], _NOT_A_NUMBER, ("offset", call.dialect.count))
        tagged = queries.tagged(call.state, text)
        page = tagged[spanned(len(tagged), offset, count if call.dialect.paged_by_end else offset + count - 1)]
        return cjson.write({"jobs": [jid for _, jid, _ in page], "total": len(tagged)})
    if word == "top":
        offset, count = span(call[1], call[2], _NOT_A_NUMBER, ("offset", call.dialect.count))
        return cjson.write(_top(call, offset, count))
    raise Raised('Tag(): First argument must be "add", "remove" or "get"')


def _top(call: Call, offset: int, count: int) -> list[str]:
    """The tags used twice or more, the most used first."""
    order = queries.tags_by_use(call.state)
    used = len(order) - order.bisect_left((2, ""))
    return [tag for _, tag in Reversed(order)[ranged(used, offset, count)]]


def _edit_tags(call: Call, word: str) -> Reply:
    jid = call.text(1, 'Tag(): Arg "jid" missing')
    found = call.job(jid)
    if found is None:
        raise Denied(f"Tag(): Job {jid} does not exist")
    given = call.rest(2)
    if call.dialect.php and word == "add":
        given = [each for each in given if not is_blank(each)]
    names = tuple(map(name, given))
    refuse_tags(len(names) + (len(found.extra.tags) if word == "add" and found.extra is not None else 0))
    call.writes()
    if names:
        uses = queries.tag_uses(call.state)
        if any(each not in uses for each in names):  # one that nobody has is counted below zero
            call.refuse_if_full()
        add, drop = (names, ()) if word == "add" else ((), names)
        call.dispatcher.do(EditTags(VIA, call.t, found.number, add, drop, call.dialect.in_scripts))
    shown = cjson.write(list(found.extra.tags) if found.extra is not None else [])
    return cjson.write(shown) if call.dialect.old and not call.dialect.in_scripts and word == "add" else shown


def track(call: Call) -> Reply:
    word, state = call[0], call.state
    if word is None:
        order = sorted(queries.tracked_jids(state).items(), key=lambda each: (each[1], each[0]))
        found = {jid: call.job(jid) for jid, _ in order}
        expired = cjson.write([jid for jid, one in found.items() if one is None])
        jobs = [one for one in found.values() if one is not None]
        shown = job.texts(state, jobs, call.dialect, REPLY_BYTES) if jobs else "{}"
        return f'{{"expired":{expired},"jobs":{shown}}}'
    jid = call.require(1, 'Track(): Arg "jid" missing')
    if call.job(jid) is None:
        raise Raised("Track(): Job does not exist")
    if word.lower() not in ("track", "untrack"):
        raise Raised(f'Track(): Unknown action "{word}"')
    return str(watch(call, jid, on=word.lower() == "track"))


def watch(call: Call, jid: str, *, on: bool) -> int:
    """Whether that is new."""
    call.writes()
    known = queries.is_tracked(call.state, jid)
    if not on:
        call.dispatcher.do(Unwatch(jid))
        return int(known)
    if not known:
        call.refuse_if_full()
    call.dispatcher.do(Watch(jid, call.t))
    return int(not known)


def log(call: Call) -> Reply:
    jid = call.text(0, "Log(): Argument 'jid' missing")
    message = call.text(1, "Log(): Argument 'message' missing")
    extra = data(call[2], "Log(): Argument 'data' not cjson: ")[0] if call[2] is not None else b""
    if len(message) + len(extra) > LOG_AT_MOST:
        raise Raised(f"Log(): message and data have more than {LOG_AT_MOST} characters")
    found = call.job(jid)
    if found is None:
        raise Raised(f"Log(): Job {jid} does not exist")
    call.writes()
    call.dispatcher.do(
        Note(VIA, call.t, found.number, HistoryEntry(float(floor(call.t)), HistoryKind.SAID, message, data=extra))
    )
    return None


# What a put says besides: priority, tags, retries, needs, throttles; and what is done by the time one is refused.


#: Each is looked up at every lease of its job.
THROTTLES_AT_MOST: Final = 100


def read_options(call: Call, jid: str, queue: str, given: dict[str, str], *, delayed: bool) -> tuple[Any, ...]:
    """Of a put: priority, tags, retries, needs, throttles; in the order in which the script looks at them. A number
    without an end is refused: the scripts take it, and cannot show the job from then on."""
    retries = finite(given["retries"], 'Put(): Arg "retries" not a number: ') if "retries" in given else None
    its_tags = asserted(given["tags"], 'Put(): Arg "tags" not JSON') if "tags" in given else None
    if call.dialect.php and its_tags is not None:
        its_tags = filled(its_tags)
    priority = finite(given["priority"], 'Put(): Arg "priority" not a number') if "priority" in given else None
    others = asserted(given.get("depends", "[]"), 'Put(): Arg "depends" not JSON: ')
    many = length(others)
    throttles = _throttles(call, jid, queue, given) if call.dialect.throttled else ()
    if call.dialect.old and delayed and many:
        raise Raised('Put(): "delay" and "depends" are not allowed to be used together')
    return (
        None if priority is None else call.dialect.turned(cjson_reader.whole(priority)),
        None if its_tags is None else tags(its_tags),
        None if retries is None else cjson_reader.whole(retries),
        jids(others),
        throttles,
    )


def backoff(given: dict[str, str]) -> tuple[float, float] | None:
    """What the put says of it; None: as the job had it. A part that it does not say is `AS_CONFIGURED`."""
    if "backoff" not in given:
        return None
    said = decoded(given["backoff"])

    def part(name: str) -> float:
        found = said.get(name) if isinstance(said, dict) else None
        value = cjson_reader.number(found) if isinstance(found, str) else found
        return value if isinstance(value, float) and isfinite(value) and value >= 0 else AS_CONFIGURED

    return part("initial_delay"), part("factor")


def unblanked(call: Call, jid: str) -> tuple[Tag, ...] | None:
    """The tags that a put leaves as they are, without blank ones; None: there are no blank ones."""
    found = call.job(jid)
    tags = found.extra.tags if found is not None and found.extra is not None else ()
    left = tuple(tag for tag in tags if not isinstance(tag, str) or not is_blank(tag))
    return None if left == tags else left


def half_done(call: Call, jid: str, queue: str, given: dict[str, str]) -> None:
    """What the script has done by the time it finds such a fault: a known job has lost its tags, and a put was told of
    if its tags were all that was wrong. It looks at `false` before, and publishes nothing."""
    if call.dialect.in_scripts:
        return
    found = call.job(jid)
    if found is not None and found.extra is not None and found.extra.tags and qless_data(found) is not None:
        call.writes()
        call.dispatcher.do(EditTags(VIA, call.t, found.number, (), found.extra.tags))
    try:
        read_options(call, jid, queue, {each: value for each, value in given.items() if each != "tags"}, delayed=False)
        its_tags = decoded(given.get("tags", "[]"))
    except Raised:
        return
    if "tags" in given and not call.dialect.php and not isinstance(its_tags, (list, dict)) and its_tags is not False:
        call.publish(*notifications.put(jid, queue))


def _throttles(call: Call, jid: str, queue: str, given: dict[str, str]) -> tuple[str, ...]:
    """Those it was given, without that of the queue it was in, and that of its own."""
    names = throttle_names(asserted(given.get("throttles", "[]"), 'Put(): Arg "throttles" not JSON array: '))
    found = call.job(jid)
    if found is not None:
        names = without(names, OF_QUEUE + job.queue(found))
    return (*names, OF_QUEUE + queue)


def throttle_names(value: Any) -> list[str]:
    """A list of names; numbers are taken as they print."""
    names: list[str] = []
    for each in listed(value, "insert"):
        if not isinstance(each, (str, float)):
            kind = "userdata" if each is cjson.NULL else "boolean" if isinstance(each, bool) else "table"
            raise Raised(f"attempt to concatenate local 'tid' (a {kind} value)")
        names.append(name(each if isinstance(each, str) else cjson_reader.show(each)))
    if len(names) > THROTTLES_AT_MOST:
        raise Refused(f"a job names more than {THROTTLES_AT_MOST} throttles, the limit")
    return names


def without(names: list[str], name: str) -> list[str]:
    """As the script takes one out while it walks: whoever follows it is passed over."""
    left, index = list(names), 0
    while index < len(left):
        if left[index] == name:
            del left[index]
        index += 1
    return left

"""Commands that name a job and need nobody's lease: put, cancel, priority, depends, tags, tracking, history, get."""

from collections.abc import Sequence
from math import floor, isfinite
from typing import Any, Final

from msgspec.structs import replace

from crossdock.engine.index import dependents
from crossdock.engine.job_view import dependencies_of
from crossdock.engine.qless.put import open_needs
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Cancel, EditDependencies, EditTags, Note, Put, SetPriority, Unwatch, Watch
from crossdock.model.job import Number
from crossdock.model.protocol_data import HistoryEntry, HistoryKind
from crossdock.model.states import State
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import cjson, cjson_reader, job, job_text, notifications, put_options
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    Raised,
    Refused,
    data,
    finite,
    is_blank,
    name,
    options,
    refuse_needs,
    refuse_tags,
    span,
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
        wanted = put_options.wanted(call, jid, queue, given, delayed=delay > 0)
    except Refused:
        raise
    except Raised:
        put_options.half_done(call, jid, queue, given)
        raise
    call.writes()
    command = Put(*head, *wanted)
    command = replace(command, keeps=call.dialect.throttled, old=call.dialect.old, sticky=call.dialect.in_scripts)
    if call.dialect.php:
        named = put_options.unblanked(call, jid) if command.tags is None else command.tags
        command = replace(command, tags=named, backoff=put_options.backoff(given))
    return command


def requeue(call: Call) -> Reply:
    jid = call.jid(2)
    if call.job(jid) is None:
        raise Raised(f"Requeue(): Job {jid} does not exist")
    return put(call)


def get(call: Call) -> Reply:
    found = call.job(call.jid())
    return None if found is None else job_text.text(call.state, found, call.dialect)


def multiget(call: Call) -> Reply:
    found = [one for jid in call.rest(0) if (one := call.job(jid)) is not None]
    return job_text.texts(call.state, found, call.dialect, REPLY_BYTES)


def cancel(call: Call) -> Reply:
    """All or none: whoever needs one of them must be named, too."""
    names = call.rest(0)
    state, named = call.state, frozenset(names)
    for jid in names:
        found = call.job(jid)
        if found is not None:
            dependents = sorted(state.jobs[each].jid for each in state.dependents.get(found.number, ()))
            unnamed = next((each for each in dependents if each not in named), None)
            if unnamed is not None:
                text = f"{jid} is a dependency of {unnamed} but is not mentioned to be canceled"
                raise Raised(f"Cancel(): {text}")
    call.writes()
    along = frozenset(found.number for jid in names if (found := call.job(jid)) is not None)
    for jid in names:
        found = call.job(jid)
        if found is None:
            for notice in notifications.canceled_unknown(jid, state.qless.watched):
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
    before, unmet = dependencies_of(found), dependents.unmet(state, found)
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
        dependency for dependency in depends_on if (job := state.jobs.get(dependency)) is None or job.jid not in names
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
        tagged: Sequence[Any] = call.state.tags.jobs.get(text, [])
        page = tagged[spanned(len(tagged), offset, count if call.dialect.paged_by_end else offset + count - 1)]
        return cjson.write({"jobs": [jid for _, jid, _ in page], "total": len(tagged)})
    if word == "top":
        offset, count = span(call[1], call[2], _NOT_A_NUMBER, ("offset", call.dialect.count))
        return cjson.write(_top(call, offset, count))
    raise Raised('Tag(): First argument must be "add", "remove" or "get"')


def _top(call: Call, offset: int, count: int) -> list[str]:
    """The tags used twice or more, the most used first."""
    order = call.state.tags.top
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
        if any(each not in call.state.tags.uses for each in names):  # one that nobody has is counted below zero
            call.refuse_if_full()
        add, drop = (names, ()) if word == "add" else ((), names)
        call.dispatcher.do(EditTags(VIA, call.t, found.number, add, drop, call.dialect.in_scripts))
    shown = cjson.write(list(found.extra.tags) if found.extra is not None else [])
    return cjson.write(shown) if call.dialect.old and not call.dialect.in_scripts and word == "add" else shown


def track(call: Call) -> Reply:
    word, state = call[0], call.state
    if word is None:
        order = sorted(state.qless.watched.items(), key=lambda each: (each[1], each[0]))
        found = {jid: call.job(jid) for jid, _ in order}
        expired = cjson.write([jid for jid, one in found.items() if one is None])
        jobs = [one for one in found.values() if one is not None]
        shown = job_text.texts(state, jobs, call.dialect, REPLY_BYTES) if jobs else "{}"
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
    known = jid in call.state.qless.watched
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

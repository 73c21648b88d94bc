"""Commands that change a job without a lease: cancel, priority, depends, tag, track, log."""

from math import floor
from typing import Final

from crossdock.engine.job_view import dependencies_of
from crossdock.engine.qless import queries
from crossdock.engine.qless.put import open_needs
from crossdock.engine.queries.jobs import dependents_of, indexed_jobs, job_by_number, unmet_dependencies
from crossdock.engine.state import EngineState
from crossdock.model.commands.qless import Cancel, EditDependencies, EditTags, Note, SetPriority, Unwatch, Watch
from crossdock.model.job import Number
from crossdock.model.protocol_data import HistoryEntry, HistoryKind
from crossdock.model.states import State
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import cjson, cjson_reader, job, notifications
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    QlessError,
    data,
    finite,
    is_blank,
    name,
    refuse_many_dependencies,
    refuse_tags,
    span,
)
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.job_lists import Reversed, ranged, spanned

#: Characters of a log entry. A job keeps a hundred history entries and shows them all.
LOG_AT_MOST: Final = 65_536

_NOT_A_NUMBER: Final = 'Tag(): Arg "%s" not a number: '


def cancel(call: Call) -> Reply:
    """Cancel all named jobs or none. Every dependent of a named job must be named too."""
    names = call.rest(0)
    state, named = call.state, frozenset(names)
    for jid in names:
        found = call.job(jid)
        if found is not None:
            dependents = sorted(each.jid for each in indexed_jobs(state, dependents_of(state, found)))
            unnamed = next((each for each in dependents if each not in named), None)
            if unnamed is not None:
                text = f"{jid} is a dependency of {unnamed} but is not mentioned to be canceled"
                raise QlessError(f"Cancel(): {text}")
    call.check_time()
    along = frozenset(found.number for jid in names if (found := call.job(jid)) is not None)
    for jid in names:
        found = call.job(jid)
        if found is None:
            for notice in notifications.canceled_unknown(jid, queries.tracked_jids(state)):
                call.publish(*notice)
        elif found.state is not State.COMPLETE:
            call.dispatcher.do(Cancel(VIA, call.t, found.number, along, call.dialect.per_script))
    return names


def priority(call: Call) -> Reply:
    jid = call.jid()
    value = finite(call[1], 'Priority(): Arg "priority" missing or not a number: ')
    found = call.job(jid)
    if found is None:
        text = (
            "Queue(): no queue name provided"
            if call.dialect.errors_omit_jid
            else f"Priority(): Job {jid} does not exist"
        )
        raise Denied(text)
    call.check_time()
    call.dispatcher.do(SetPriority(VIA, call.t, found.number, call.dialect.flipped(cjson_reader.whole(value))))
    return cjson_reader.truncated(value)


def depends(call: Call) -> Reply:
    jid = call.jid()
    word = call[1]
    if word is None:
        raise QlessError('Depends(): Arg "command" missing')
    found = call.job(jid)
    if found is None or found.state is not State.BLOCKED:
        shown = "false" if found is None else job.state_name(found)
        raise Denied(f"Depends(): Job {jid} not in the depends state: {shown}")
    names, state = call.rest(2), call.state
    before, unmet = dependencies_of(found), unmet_dependencies(state, found)
    if word == "on":
        depends_on = tuple(dict.fromkeys((*unmet, *open_needs(state, names, jid, found.number))))
        refuse_many_dependencies(len(depends_on))
    elif word == "off":
        depends_on = () if names[:1] == ["all"] else _but(state, unmet, frozenset(names))
    else:
        raise QlessError('Depends(): Argument "command" must be "on" or "off"')
    call.check_time()
    if depends_on != before:
        call.dispatcher.do(EditDependencies(VIA, 0.0 if call.dialect.per_script else call.t, found.number, depends_on))
    return 1


def _but(state: EngineState, depends_on: tuple[Number, ...], names: frozenset[str]) -> tuple[Number, ...]:
    """The dependencies without those of these names. One that no longer exists stays: it was lost, and the engine is
    about to update its dependents."""
    return tuple(
        dependency
        for dependency in depends_on
        if (job := job_by_number(state, dependency)) is None or job.jid not in names
    )


def tag(call: Call) -> Reply:
    word = call[0]
    if word is None:
        raise QlessError('Tag(): Arg "command" must be "add", "remove", "get" or "top"')
    if word in ("add", "remove"):
        return _edit_tags(call, word)
    if word == "get":
        text = call.text(1, 'Tag(): Arg "tag" missing')
        offset, count = span(call[2], call[3], _NOT_A_NUMBER, ("offset", call.dialect.count))
        tagged = queries.tagged(call.state, text)
        page = tagged[spanned(len(tagged), offset, count if call.dialect.limit_is_end_index else offset + count - 1)]
        return cjson.write({"jobs": [jid for _, jid, _ in page], "total": len(tagged)})
    if word == "top":
        offset, count = span(call[1], call[2], _NOT_A_NUMBER, ("offset", call.dialect.count))
        return cjson.write(_top(call, offset, count))
    raise QlessError('Tag(): First argument must be "add", "remove" or "get"')


def _top(call: Call, offset: int, count: int) -> list[str]:
    """The tags that are used at least twice, the most used first."""
    order = queries.tags_by_use(call.state)
    used = len(order) - order.bisect_left((2, ""))
    return [tag for _, tag in Reversed(order)[ranged(used, offset, count)]]


def _edit_tags(call: Call, word: str) -> Reply:
    jid = call.text(1, 'Tag(): Arg "jid" missing')
    found = call.job(jid)
    if found is None:
        raise Denied(f"Tag(): Job {jid} does not exist")
    words = call.rest(2)
    if call.dialect.php and word == "add":
        words = [each for each in words if not is_blank(each)]
    names = tuple(map(name, words))
    refuse_tags(len(names) + (len(found.extra.tags) if word == "add" and found.extra is not None else 0))
    call.check_time()
    if names:
        uses = queries.tag_uses(call.state)
        if any(each not in uses for each in names):  # removing a tag without uses records a negative count
            call.refuse_if_full()
        add, drop = (names, ()) if word == "add" else ((), names)
        call.dispatcher.do(EditTags(VIA, call.t, found.number, add, drop, call.dialect.per_script))
    shown = cjson.write(list(found.extra.tags) if found.extra is not None else [])
    return cjson.write(shown) if call.dialect.old and not call.dialect.per_script and word == "add" else shown


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
        raise QlessError("Track(): Job does not exist")
    if word.lower() not in ("track", "untrack"):
        raise QlessError(f'Track(): Unknown action "{word}"')
    return str(set_tracked(call, jid, on=word.lower() == "track"))


def set_tracked(call: Call, jid: str, *, on: bool) -> int:
    """Track or untrack a job; 1 if that changes something, else 0."""
    call.check_time()
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
        raise QlessError(f"Log(): message and data may have at most {LOG_AT_MOST} characters")
    found = call.job(jid)
    if found is None:
        raise QlessError(f"Log(): Job {jid} does not exist")
    call.check_time()
    call.dispatcher.do(
        Note(VIA, call.t, found.number, HistoryEntry(float(floor(call.t)), HistoryKind.SAID, message, data=extra))
    )
    return None

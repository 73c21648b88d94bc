"""Recurring jobs: recur, unrecur, recur.get, recur.update, recur.tag, recur.untag (qless.md section 5)."""

from typing import Any

from msgspec.structs import replace

from crossdock.engine.qless.intervals import every
from crossdock.engine.queries.queues import has_queue
from crossdock.engine.queries.records import recurring_job
from crossdock.model.commands.qless import ClearInterval, SetInterval
from crossdock.model.job import Form
from crossdock.model.records import OF_QUEUE, Interval
from crossdock.protocols.redis.qless import cjson, cjson_reader
from crossdock.protocols.redis.qless.arguments import (
    Denied,
    QlessError,
    array,
    data,
    finite,
    is_blank,
    kind,
    name,
    nonblank_tags,
    options,
    refuse_tags,
    tags,
)
from crossdock.protocols.redis.qless.call import Call, Reply
from crossdock.protocols.redis.qless.put import throttle_names, without


def recur(call: Call) -> Reply:
    """now queue jid klass data "interval" seconds offset [option value]…"""
    queue = call.queue()
    jid = call.require(1, 'RecurringJob On(): Arg "jid" missing')
    kind = call.kind(2, 'RecurringJob On(): Arg "klass" missing')
    spec = call.text(4, 'RecurringJob On(): Arg "spec" missing')
    payload = data(call[3], 'RecurringJob On(): Arg "data" not JSON: ')
    if spec != "interval":
        raise QlessError(f'Recur(): schedule type "{spec}" unknown')
    return _at_interval(call, (queue, jid, kind), payload, call.rest(5))


def recur_at_interval(call: Call) -> Reply:
    """The form of reqless: now queue jid klass data seconds offset [option value]…"""
    queue = call.queue()
    jid, kind = call.require(1, 'Recur(): Arg "jid" missing'), call.kind(2, 'Recur(): Arg "klass" missing')
    payload = data(call[3], 'Recur(): Arg "data" not JSON: ')
    return _at_interval(call, (queue, jid, kind), payload, call.rest(4))


def _at_interval(call: Call, names: tuple[str, str, str], job: tuple[bytes, Form], rest: list[str]) -> Reply:
    """`rest` holds seconds, offset and options."""
    queue, jid, kind = names
    payload, form = job
    seconds, begin = (*rest[:2], None, None)[:2]
    spacing = finite(seconds, 'Recur(): Arg "interval" not a number: ')
    offset = finite(begin, 'Recur(): Arg "offset" not a number: ')
    if spacing <= 0:
        least = "or equal to " if call.dialect.per_script or (call.dialect.old and spacing < 0) else ""
        raise QlessError(f'Recur(): Arg "interval" must be greater than {least}0')
    pairs = options(rest[2:], "Recur(): " if call.dialect.is_reqless else "")
    tag_list = array(pairs.get("tags", "[]"), 'Recur(): Arg "tags" must be JSON string array: ')
    its_tags = tags(nonblank_tags(tag_list) if call.dialect.php else tag_list)
    priority, retries, backlog = (
        cjson_reader.whole(finite(pairs.get(each), f'Recur(): Arg "{each}" not a number: ', 0.0))
        for each in ("priority", "retries", "backlog")
    )
    known = recurring_job(call.state, jid)
    throttles: tuple[str, ...] = ()
    if call.dialect.throttled:
        listed = throttle_names(array(pairs.get("throttles", "{}"), 'Recur(): Arg "throttles" not JSON array: '))
        others = without(listed, known.queue) if known is not None else listed
        throttles = (*others, OF_QUEUE + queue)
    call.check_time()
    interval = Interval(
        jid=jid,
        queue=queue,
        kind=kind,
        payload=payload,
        form=form,
        seconds=cjson_reader.whole(spacing),
        next=call.t + offset,
        next_at=call.dispatcher.now.wall + offset,
        priority=call.dialect.flipped(priority),
        tags=its_tags,
        retries=retries,
        backlog=backlog,
        count=known.count if known is not None else 0,
        throttles=throttles,
        old=call.dialect.old,
    )
    if known is None or not has_queue(call.state, queue):
        call.refuse_if_full()
    call.dispatcher.do(SetInterval(interval, call.t))
    return jid


def _jid(call: Call) -> str:
    return call.require(0, "Recurring(): no jid provided")


def unrecur(call: Call) -> Reply:
    call.dispatcher.do(ClearInterval(_jid(call)))
    return 1


def get(call: Call) -> Reply:
    found = recurring_job(call.state, _jid(call))
    if found is None:
        return None
    shown: dict[str, Any] = {
        "tags": list(found.tags),
        "jid": found.jid,
        "retries": found.retries,
        "data": found.payload.decode("utf-8", "surrogateescape"),
        "queue": found.queue,
        "state": "recur",
        "count": found.count,
        "interval": found.seconds,
        "klass": found.kind,
        "backlog": found.backlog,
        "priority": call.dialect.flipped(found.priority),
    }
    if call.dialect.per_script:
        del shown["backlog"]
        shown["data"] = cjson.read(str(shown["data"]))
    if call.dialect.throttled:
        shown["throttles"] = list(found.throttles)
    return cjson.write(shown)


def update(call: Call) -> Reply:
    jid = _jid(call)
    found = recurring_job(call.state, jid)
    if found is None:
        raise Denied(f"Recur(): No recurring job {jid}")
    pairs = call.rest(1)
    changed = found
    for index in range(0, len(pairs), 2):
        option = pairs[index]
        value = pairs[index + 1] if index + 1 < len(pairs) else None
        if value is None:
            raise QlessError(f"No value provided for {option}")
        changed = _changed(call, changed, option, value)
    call.check_time()
    if changed is not found:
        if changed.queue != found.queue and not has_queue(call.state, changed.queue):
            call.refuse_if_full()
        registers = "queue" in pairs[::2] and not call.dialect.per_script
        call.dispatcher.do(SetInterval(changed, call.t, registers=registers))
    return 1


def _changed(call: Call, interval: Interval, option: str, value: str) -> Interval:
    if option in ("priority", "interval", "retries"):
        found = cjson_reader.whole(finite(value, f'Recur(): Arg "{option}" must be a number: '))
        if option == "priority":
            return replace(interval, priority=call.dialect.flipped(found))
        if option == "retries":
            return replace(interval, retries=found)
        if found <= 0:
            raise QlessError('Recur(): Arg "interval" must be greater than 0')
        return every(interval, found)
    if option == "data":
        payload, form = data(value, 'Recur(): Arg "data" is not JSON-encoded: ')
        return replace(interval, payload=payload, form=form)
    if option == "klass":
        return replace(interval, kind=kind(value))
    if option == "queue" and call.dialect.throttled:
        left = without(list(interval.throttles), OF_QUEUE + interval.queue)
        return replace(interval, queue=name(value), throttles=(*left, OF_QUEUE + value))
    if option == "queue":
        return replace(interval, queue=name(value))
    if option == "throttles" and call.dialect.throttled:
        named = throttle_names(array(value, 'Recur(): Arg "throttles" is not JSON-encoded: '))
        return replace(interval, throttles=tuple(named))
    if option == "backlog":
        return replace(interval, backlog=cjson_reader.whole(finite(value, 'Recur(): Arg "backlog" not a number: ')))
    raise QlessError(f'Recur(): Unrecognized option "{option}"')


def tag(call: Call) -> Reply:
    return _retagged(call, "Tag", add=True)


def untag(call: Call) -> Reply:
    return _retagged(call, "Untag", add=False)


def _retagged(call: Call, word: str, *, add: bool) -> Reply:
    jid = _jid(call)
    found = recurring_job(call.state, jid)
    if found is None:
        raise Denied(f"{word}(): Job {jid} does not exist")
    names = [name(each) for each in call.rest(1) if not (add and call.dialect.php and is_blank(each))]
    refuse_tags(len(names) + (len(found.tags) if add else 0))
    if add:  # a new tag that is named twice is added twice, as in the script
        after = (*found.tags, *(each for each in names if each not in found.tags))
    else:
        after = tuple(each for each in found.tags if each not in names)
    call.check_time()
    if after != found.tags:
        call.dispatcher.do(SetInterval(replace(found, tags=after), call.t, registers=False))
    return cjson.write(list(after))

"""put and requeue: their arguments, and their options priority, tags, retries, depends, throttles and backoff."""

from math import isfinite
from typing import Any, Final

from msgspec.structs import replace

from crossdock.engine.job_view import qless_data
from crossdock.model.commands.qless import EditTags, Put
from crossdock.model.protocol_data import AS_CONFIGURED, Tag
from crossdock.model.records import OF_QUEUE
from crossdock.protocols.redis.qless import cjson_reader, job, notifications
from crossdock.protocols.redis.qless.arguments import (
    QlessError,
    Refused,
    data,
    decoded,
    decoded_not_false,
    finite,
    is_blank,
    jids,
    length,
    listed,
    lua_type,
    name,
    nonblank_tags,
    options,
    tags,
)
from crossdock.protocols.redis.qless.call import VIA, Call, Reply

_PUT: Final = ("Queue(): no queue name provided", 'Put(): Arg "jid" missing', 'Put(): Arg "klass" missing')
_DELAY: Final = 'Put(): Arg "delay" not a number: '


def put(call: Call) -> Reply:
    """now [worker] queue jid klass data delay [option value]…"""
    dialect = call.dialect
    first = 0 if dialect.old else 1
    queue, jid, kind = call.names(first, _PUT, 2)
    payload, form = data(call[first + 3], 'Put(): Arg "data" missing or not JSON: ')
    delay = call.number(first + 4, _DELAY)
    if not isfinite(delay):
        raise QlessError(f"{_DELAY}{call[first + 4]}")
    worker = None if dialect.old else call[0]
    head = (VIA, call.t, worker, jid, queue, kind, payload, form, delay)
    more = call.rest(first + 5)
    if not more and not dialect.throttled and not dialect.php:
        call.check_time()
        command = Put(*head, old=dialect.old, sticky=dialect.per_script)
    else:
        command = _put(call, head, options(more))
    call.refuse_if_full()
    call.dispatcher.do(command)
    return jid


def _put(call: Call, head: tuple[Any, ...], pairs: dict[str, str]) -> Put:
    """A put with options, or one of a dialect that adds options of its own."""
    jid, queue, delay = head[3], head[4], head[8]
    try:
        values = read_options(call, jid, queue, pairs, delayed=delay > 0)
    except Refused:
        raise
    except QlessError:
        apply_partial_effects(call, jid, queue, pairs)
        raise
    call.check_time()
    command = Put(*head, *values)
    command = replace(command, keeps=call.dialect.throttled, old=call.dialect.old, sticky=call.dialect.per_script)
    if call.dialect.php:
        its_tags = tags_without_blanks(call, jid) if command.tags is None else command.tags
        command = replace(command, tags=its_tags, backoff=backoff(pairs))
    return command


def requeue(call: Call) -> Reply:
    jid = call.jid(2)
    if call.job(jid) is None:
        raise QlessError(f"Requeue(): Job {jid} does not exist")
    return put(call)


#: Throttles of one job. Each is looked up at every lease of the job.
THROTTLES_AT_MOST: Final = 100


def read_options(call: Call, jid: str, queue: str, pairs: dict[str, str], *, delayed: bool) -> tuple[Any, ...]:
    """Priority, tags, retries, dependencies and throttles, checked in the order of the script. An infinite number is
    refused: the scripts accept it and can no longer show the job."""
    retries = finite(pairs["retries"], 'Put(): Arg "retries" not a number: ') if "retries" in pairs else None
    its_tags = decoded_not_false(pairs["tags"], 'Put(): Arg "tags" not JSON') if "tags" in pairs else None
    if call.dialect.php and its_tags is not None:
        its_tags = nonblank_tags(its_tags)
    priority = finite(pairs["priority"], 'Put(): Arg "priority" not a number') if "priority" in pairs else None
    others = decoded_not_false(pairs.get("depends", "[]"), 'Put(): Arg "depends" not JSON: ')
    many = length(others)
    throttles = _throttles(call, jid, queue, pairs) if call.dialect.throttled else ()
    if call.dialect.old and delayed and many:
        raise QlessError('Put(): "delay" and "depends" are not allowed to be used together')
    return (
        None if priority is None else call.dialect.flipped(cjson_reader.whole(priority)),
        None if its_tags is None else tags(its_tags),
        None if retries is None else cjson_reader.whole(retries),
        jids(others),
        throttles,
    )


def backoff(pairs: dict[str, str]) -> tuple[float, float] | None:
    """Initial delay and factor; None: the job keeps its own. A missing part is `AS_CONFIGURED`."""
    if "backoff" not in pairs:
        return None
    members = decoded(pairs["backoff"])

    def part(name: str) -> float:
        found = members.get(name) if isinstance(members, dict) else None
        value = cjson_reader.number(found) if isinstance(found, str) else found
        return value if isinstance(value, float) and isfinite(value) and value >= 0 else AS_CONFIGURED

    return part("initial_delay"), part("factor")


def tags_without_blanks(call: Call, jid: str) -> tuple[Tag, ...] | None:
    """The tags of a job without blank ones; None if it has no blank tags."""
    found = call.job(jid)
    tags = found.extra.tags if found is not None and found.extra is not None else ()
    left = tuple(tag for tag in tags if not isinstance(tag, str) or not is_blank(tag))
    return None if left == tags else left


def apply_partial_effects(call: Call, jid: str, queue: str, pairs: dict[str, str]) -> None:
    """Apply what the script has changed when it finds an invalid option: a known job has lost its tags, and the put is
    published if only the tags are invalid. It checks for `false` earlier, before it publishes."""
    if call.dialect.per_script:
        return
    found = call.job(jid)
    if found is not None and found.extra is not None and found.extra.tags and qless_data(found) is not None:
        call.check_time()
        call.dispatcher.do(EditTags(VIA, call.t, found.number, (), found.extra.tags))
    try:
        read_options(call, jid, queue, {each: value for each, value in pairs.items() if each != "tags"}, delayed=False)
        its_tags = decoded(pairs.get("tags", "[]"))
    except QlessError:
        return
    if "tags" in pairs and not call.dialect.php and not isinstance(its_tags, (list, dict)) and its_tags is not False:
        call.publish(*notifications.put(jid, queue))


def _throttles(call: Call, jid: str, queue: str, pairs: dict[str, str]) -> tuple[str, ...]:
    """The throttles of the option, without that of the job's old queue, and that of its new queue."""
    names = throttle_names(decoded_not_false(pairs.get("throttles", "[]"), 'Put(): Arg "throttles" not JSON array: '))
    found = call.job(jid)
    if found is not None:
        names = without(names, OF_QUEUE + job.queue(found))
    return (*names, OF_QUEUE + queue)


def throttle_names(value: Any) -> list[str]:
    """The names in a JSON list. Numbers become text."""
    names: list[str] = []
    for each in listed(value, "insert"):
        if not isinstance(each, (str, float)):
            raise QlessError(f"attempt to concatenate local 'tid' (a {lua_type(each)} value)")
        names.append(name(each if isinstance(each, str) else cjson_reader.show(each)))
    if len(names) > THROTTLES_AT_MOST:
        raise Refused(f"a job may have at most {THROTTLES_AT_MOST} throttles")
    return names


def without(names: list[str], name: str) -> list[str]:
    """The names without `name`. As in the script, which removes items during the iteration, the item after a removed
    one is not checked."""
    left, index = list(names), 0
    while index < len(left):
        if left[index] == name:
            del left[index]
        index += 1
    return left

"""What a put says besides: priority, tags, retries, needs, throttles; and what is done by the time one is refused."""

from math import isfinite
from typing import Any, Final

from crossdock.engine.job_view import qless_data
from crossdock.model.commands.qless import EditTags
from crossdock.model.protocol_data import AS_CONFIGURED, Tag
from crossdock.model.records import OF_QUEUE
from crossdock.protocols.redis.qless import cjson, cjson_reader, job, notifications
from crossdock.protocols.redis.qless.arguments import (
    Raised,
    Refused,
    asserted,
    decoded,
    filled,
    finite,
    is_blank,
    jids,
    length,
    listed,
    name,
    tags,
)
from crossdock.protocols.redis.qless.call import VIA, Call

#: Each is looked up at every lease of its job.
THROTTLES_AT_MOST: Final = 100


def wanted(call: Call, jid: str, queue: str, given: dict[str, str], *, delayed: bool) -> tuple[Any, ...]:
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
        wanted(call, jid, queue, {each: value for each, value in given.items() if each != "tags"}, delayed=False)
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

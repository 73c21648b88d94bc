"""PUSH and PUSHB of a session that announced the extensions: `once`, `depends_on`, `tags`, `keep_result_s`, `rate`."""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec.structs import replace

from crossdock.engine.queries.jobs import has_jid, newest_job
from crossdock.engine.queries.records import pushed_once
from crossdock.model.clock import Now
from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.commands.extensions import EnqueueOnce
from crossdock.model.job import Extra, Links, Spec
from crossdock.model.policies import DependencyLoss, Disposition, Policy
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.faktory.job import UNREADABLE, PushBody, spec
from crossdock.protocols.faktory.messages import OK, error
from crossdock.protocols.faktory.push import Refusals, check_text, note_refused, read_pieces, refusal, slices
from crossdock.protocols.faktory.rates import RateBody, terms
from crossdock.protocols.job_spec import NAME_BYTES, InvalidJob, unique_name

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

VIA: Final = "faktory"

T = TypeVar("T")

DEPENDENCIES_AT_MOST: Final = 1_000
TAGS_AT_MOST: Final = 100
KEEP_RESULT_AT_MOST_S: Final = 604_800.0

_LINKS: Final = Links()
_EXTRA: Final = Extra()


class ExtendedBody(PushBody, gc=False):
    once: bool = False
    depends_on: list[str] | None = None
    tags: list[str] | None = None
    keep_result_s: float | None = None
    rate: RateBody | None = None


class _Keyed(msgspec.Struct):
    unique_key: str | None = None


_decode_one = msgspec.json.Decoder(ExtendedBody).decode
_decode_many = msgspec.json.Decoder(list[ExtendedBody]).decode
_decode_keyed = msgspec.json.Decoder(_Keyed).decode
_quote = msgspec.json.Encoder().encode


def _read(decode: Callable[[bytes | memoryview], T], body: bytes | memoryview) -> T:
    """Raises InvalidJob."""
    try:
        if isinstance(body, bytes) and not body.isascii():
            body.decode()  # the decoder does not check args and custom
        return decode(body)
    except UNREADABLE as wrong:
        raise InvalidJob(f"invalid JSON: {wrong}") from wrong


def push(session: "FaktorySession", body: bytes | memoryview) -> bytes:
    dispatcher = session.dispatcher
    try:
        asked = _read(_decode_one, body)
        one = extended_spec(asked, dispatcher)
    except InvalidJob as refused:
        return error(str(refused))
    no_room = dispatcher.no_room(1)
    if no_room is not None:
        return OK if asked.once and _known(dispatcher, one.jid) else error(no_room)
    outcome = dispatcher.do(EnqueueOnce(VIA, [one]) if asked.once else Enqueue(VIA, [one]))
    if not outcome or outcome[0] is Refused.DUPLICATE:
        return OK
    code, _, text = refusal(one, outcome[0]).partition(" ")
    return error(text, code.encode())


def push_large(session: "FaktorySession", body: memoryview) -> Slices:
    try:
        yield from check_text(body)
    except InvalidJob as refused:
        return error(str(refused))
    return push(session, body)


def push_bulk(session: "FaktorySession", body: bytes) -> Answer:
    try:
        bodies = _read(_decode_many, body)
    except InvalidJob as refused:
        return error(str(refused))
    return slices(session.dispatcher, iter(bodies), partial(_take, session.dispatcher))


def push_bulk_large(session: "FaktorySession", body: memoryview) -> Slices:
    try:
        yield from check_text(body)
        bodies = yield from read_pieces(body, _decode_many)
    except InvalidJob as refused:
        return error(str(refused))
    del body  # the pieces hold what is still needed
    return (yield from slices(session.dispatcher, bodies, partial(_take, session.dispatcher)))


def _known(dispatcher: Dispatcher, jid: str) -> bool:
    """Whether a push with `once` adds nothing. A full server answers such a push, too."""
    return has_jid(dispatcher.state, jid) or pushed_once(dispatcher.state, jid, dispatcher.now.steady)


def _take(dispatcher: Dispatcher, some: list[ExtendedBody], refused: Refusals) -> int:
    """Push some jobs of a list. Returns the number of jobs that are valid."""
    valid, pairs, jids = 0, list[tuple[bool, Spec]](), set[str]()
    for each in some:
        if each.depends_on and not jids.isdisjoint(each.depends_on):
            _enqueue(dispatcher, pairs, refused)  # a dependency must have its number first
            pairs, jids = [], set()
        try:
            one = extended_spec(each, dispatcher)
        except InvalidJob as wrong:
            refused[each.jid or ""] = str(wrong)
            continue
        valid += 1
        pairs.append((each.once, one))
        jids.add(one.jid)
    _enqueue(dispatcher, pairs, refused)
    return valid


def _enqueue(dispatcher: Dispatcher, pairs: list[tuple[bool, Spec]], refused: Refusals) -> None:
    for once, run in groupby(pairs, key=lambda pair: pair[0]):
        specs = [one for _, one in run if not (once and _known(dispatcher, one.jid))]
        no_room = dispatcher.no_room(len(specs))
        if no_room is not None:
            refused.update((each.jid, no_room) for each in specs)
        elif specs:
            note_refused(refused, specs, dispatcher.do(EnqueueOnce(VIA, specs) if once else Enqueue(VIA, specs)))


def extended_spec(body: ExtendedBody, dispatcher: Dispatcher, now: Now | None = None) -> Spec:
    """`now` is another time than the current one, for a job of a schedule. Raises InvalidJob."""
    one = spec(body, now or dispatcher.now)
    extra = one.extra
    if extra is not None and extra.custom and b'"unique_key"' in extra.custom:
        extra = _with_unique_key(one, extra)
        one = replace(one, extra=extra)
    if not (body.depends_on or body.tags or body.keep_result_s or body.rate):
        return one
    extra = extra or _EXTRA
    links, policy = extra.links, one.policy
    if body.keep_result_s or body.depends_on:
        keep_s, depends_on = _keep_s(body), _dependencies(body, dispatcher)
        links = replace(links or _LINKS, keep_result_s=keep_s, depends_on=depends_on)
        policy = _policy(policy, bool(keep_s), bool(depends_on))
    rate = terms(body.rate) if body.rate is not None else None
    return replace(one, policy=policy, extra=replace(extra, links=links, tags=_tags(body), rate=rate))


@lru_cache(maxsize=1_024)
def _policy(policy: Policy, keeps: bool, waits: bool) -> Policy:
    """A job with a kept result is kept after success, and after a failure that would remove it."""
    if keeps:
        gone = policy.exhausted is Disposition.GONE
        policy = replace(
            policy, success=Disposition.COMPLETE, exhausted=Disposition.FAILED if gone else policy.exhausted
        )
    return replace(policy, lost=DependencyLoss.WAITS_ON) if waits else policy


def _keep_s(body: ExtendedBody) -> float:
    seconds = body.keep_result_s or 0.0
    if not 0 <= seconds <= KEEP_RESULT_AT_MOST_S:
        raise InvalidJob(f"keep_result_s must be a number of seconds from 0 to {KEEP_RESULT_AT_MOST_S:.0f}")
    return seconds


def _dependencies(body: ExtendedBody, dispatcher: Dispatcher) -> tuple[int, ...]:
    """The numbers of the jobs. A jid that no job has counts as succeeded."""
    wanted = body.depends_on or ()
    if len(wanted) > DEPENDENCIES_AT_MOST:
        raise InvalidJob(f"depends_on must not have more than {DEPENDENCIES_AT_MOST} jids")
    found = [newest_job(dispatcher.state, jid) for jid in wanted]
    return tuple(job.number for job in found if job is not None)


def _tags(body: ExtendedBody) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(body.tags or ()))
    if len(tags) > TAGS_AT_MOST:
        raise InvalidJob(f"tags must not have more than {TAGS_AT_MOST} entries")
    if not all(0 < len(tag.encode()) <= NAME_BYTES for tag in tags):
        raise InvalidJob(f"each of the tags must have 1 to {NAME_BYTES} bytes")
    return tags


def _with_unique_key(one: Spec, extra: Extra) -> Extra:
    """The lock is named by the key, not by the args. Args are an array, so the two cannot be confused."""
    try:
        key = _decode_keyed(extra.custom).unique_key
    except msgspec.DecodeError as wrong:
        raise InvalidJob(f"invalid custom: {wrong}") from wrong
    if key is None:
        return extra
    lock = extra.links.lock if extra.links is not None else None
    if extra.links is None or lock is None:
        raise InvalidJob("custom.unique_key needs custom.unique_for")
    if not 0 < len(key.encode()) <= NAME_BYTES:
        raise InvalidJob(f"custom.unique_key must have 1 to {NAME_BYTES} bytes")
    lock = replace(lock, name=unique_name(one.kind, _quote(key), one.queue))
    return replace(extra, links=replace(extra.links, lock=lock))

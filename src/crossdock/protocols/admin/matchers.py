"""From a word of the filter language to a matcher of jobs.

A matcher takes a list of jobs and returns those that match. It is one loop, because a call for each job would cost
three times as much.
"""

import json
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from crossdock.engine.index.tags import name as tag_name
from crossdock.engine.job_view import listed_in
from crossdock.model.job import Job
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import State
from crossdock.protocols.admin.filter_language import Term, Value, read_span, read_time

Matcher: TypeAlias = Callable[[list[Job]], list[Job]]

#: Fields that read a job's payload or error, whose size clients choose.
SEARCHING: Final = frozenset({"", "error", "payload"})

#: States that a job enters with its last error.
_BY_ERROR: Final = frozenset({State.RETRYING, State.FAILED})

ENDED: Final = frozenset({State.FAILED, State.DEAD})  #: states of jobs that have failed for good


def state_since(job: Job) -> float:
    """Wall: when the job entered its state."""
    if job.state is State.READY:
        return job.since
    if job.lease is not None:
        return job.lease.at
    if job.state is State.DEAD:
        return job.due - DEAD_FOR
    if job.state in _BY_ERROR and job.extra is not None and job.extra.error is not None:
        return job.extra.error.at
    return job.created


def was_in_state(job: Job, before: float) -> bool:
    """Was the job in its state by then? For dead jobs the sum is compared, because the difference may be rounded."""
    return job.due <= before + DEAD_FOR if job.state is State.DEAD else state_since(job) <= before


def matcher_of(term: Term, now: float) -> Matcher:
    """`now` is the time that spans count back from."""
    matcher = _MAKERS[term.field](term, now)
    return _none_of(matcher) if term.negated else matcher


def _none_of(matcher: Matcher) -> Matcher:
    def rest(jobs: list[Job]) -> list[Job]:
        matched = {job.number for job in matcher(jobs)}
        return [job for job in jobs if job.number not in matched]

    return rest


def _either(values: Collection[Value]) -> Callable[[str], bool]:
    """Whether a text matches one of these values."""
    exact = frozenset(value.text for value in values if not value.prefix)
    prefixes = tuple(value.text for value in values if value.prefix)
    return lambda text: text in exact or text.startswith(prefixes)


def _by_state(term: Term, now: float) -> Matcher:
    states = {State[value.text.upper()] for value in term.values}
    return lambda jobs: [job for job in jobs if job.state in states]


def _by_queue(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [job for job in jobs if is_one(job.queue)]


def _by_kind(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [job for job in jobs if is_one(job.kind)]


def _by_tag(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [
        job
        for job in jobs
        if job.extra is not None and job.extra.tags and any(is_one(tag_name(tag)) for tag in job.extra.tags)
    ]


def numbers_of(values: Collection[Value]) -> frozenset[int]:
    """The numbers of jobs that these values may name."""
    return frozenset(
        int(value.text) for value in values if value.text.isascii() and value.text.isdecimal() and not value.prefix
    )


def _by_id(term: Term, now: float) -> Matcher:
    is_one, numbers = _either(term.values), numbers_of(term.values)
    return lambda jobs: [job for job in jobs if is_one(job.jid) or job.number in numbers]


def _by_group(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [job for job in jobs if job.state in ENDED and is_one(listed_in(job))]


def _by_protocol(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [job for job in jobs if is_one(job.origin)]


def _by_worker(term: Term, now: float) -> Matcher:
    is_one = _either(term.values)
    return lambda jobs: [job for job in jobs if job.lease is not None and is_one(job.lease.worker)]


def _by_error(term: Term, now: float) -> Matcher:
    text = term.values[0].text.casefold()
    return lambda jobs: [job for job in jobs if _error_has(job, text)]


def _error_has(job: Job, text: str) -> bool:
    error = job.extra.error if job.extra is not None else None
    return error is not None and text in error.text.casefold()


def _by_payload(term: Term, now: float) -> Matcher:
    """As the text was written, or as JSON with escapes writes it."""
    text = term.values[0].text
    plain = text.encode("utf-8", "surrogatepass")
    escaped = json.dumps(text)[1:-1].encode()
    if escaped == plain:
        return lambda jobs: [job for job in jobs if plain in job.payload]
    return lambda jobs: [job for job in jobs if plain in job.payload or escaped in job.payload]


def _by_any(term: Term, now: float) -> Matcher:
    """A bare word: the number or the beginning of the jid, or a part of kind, queue or error."""
    text = term.values[0].text
    folded, numbers = text.casefold(), numbers_of(term.values)
    return lambda jobs: [
        job
        for job in jobs
        if job.jid.startswith(text)
        or job.number in numbers
        or folded in job.kind.casefold()
        or folded in job.queue.casefold()
        or _error_has(job, folded)
    ]


def _by_time_before(term: Term, now: float) -> Matcher:
    before = now - (read_span(term.values[0].text) or 0.0)
    return lambda jobs: [job for job in jobs if was_in_state(job, before)]


def _by_time_after(term: Term, now: float) -> Matcher:
    after = now - (read_span(term.values[0].text) or 0.0)
    return lambda jobs: [job for job in jobs if not was_in_state(job, after)]


def _time(term: Term, now: float) -> float:
    """A time, or a span before now."""
    text = term.values[0].text
    ago = read_span(text)
    return now - ago if ago is not None else read_time(text) or 0.0


def _by_created_since(term: Term, now: float) -> Matcher:
    since = _time(term, now)
    return lambda jobs: [job for job in jobs if job.created >= since]


def _by_created_until(term: Term, now: float) -> Matcher:
    until = _time(term, now)
    return lambda jobs: [job for job in jobs if job.created <= until]


_MAKERS: Final[dict[str, Callable[[Term, float], Matcher]]] = {
    "": _by_any,
    "state": _by_state,
    "queue": _by_queue,
    "kind": _by_kind,
    "tag": _by_tag,
    "id": _by_id,
    "group": _by_group,
    "error": _by_error,
    "payload": _by_payload,
    "protocol": _by_protocol,
    "worker": _by_worker,
    "older": _by_time_before,
    "newer": _by_time_after,
    "since": _by_created_since,
    "until": _by_created_until,
}

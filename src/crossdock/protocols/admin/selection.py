"""From the filters and IDs of a request to the jobs they select."""

from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from crossdock.engine.job_view import listed_in
from crossdock.engine.queries.jobs import failure_group, failure_groups, indexed_states, job_by_number, jobs_of_jid
from crossdock.engine.queries.queues import has_queue, queues_by_name
from crossdock.engine.queries.records import totals
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.protocols.admin.filter_language import BadFilter, Term, parse
from crossdock.protocols.admin.matchers import ENDED, SEARCHING, Matcher, matcher_of, state_since, was_in_state
from crossdock.protocols.admin.messages import Invalid, JobFilter

#: The order of a walk: jobs being worked on first, ended jobs last.
ORDER: Final = (
    State.LEASED,
    State.READY,
    State.RETRYING,
    State.SCHEDULED,
    State.BLOCKED,
    State.HELD,
    State.FAILED,
    State.DEAD,
    State.COMPLETE,
)


LEASED_ONLY: Final = frozenset({State.LEASED})


def states(state: EngineState) -> list[State]:
    """The states that a job may be in, in the order of a walk."""
    return [job_state for job_state in ORDER if job_state is State.READY or job_state in indexed_states(state)]


class Selection(msgspec.Struct, frozen=True):
    """Which jobs a request selects. An empty text matches all."""

    states: frozenset[State]
    queue: str = ""
    kind: str = ""
    tag: str | None = None
    failure: str | None = None  #: failed or dead, in this group
    before: float | None = None  #: wall; in its state since then or longer
    to: str = ""  #: only jobs that can be moved to this queue
    connected: frozenset[str] | None = None  #: only jobs whose lease can be released, with these workers connected
    failure_prefix: str | None = None  #: failed or dead, in a group that begins so
    ids: tuple[str, ...] | None = None  #: only jobs with these IDs
    matchers: tuple[Matcher, ...] = ()  #: what the fields above do not say; those that search texts come last
    searches: bool = False  #: a matcher reads payloads or errors


def matching(jobs: list[Job], state: State | None, wanted: Selection) -> list[Job]:
    """The selected jobs. `state` is the state of them all, if known. One loop for each filter: a call for each job
    would cost three times as much."""
    if state is None:
        jobs = [job for job in jobs if job.state in wanted.states]
        if wanted.failure is not None:
            jobs = [job for job in jobs if listed_in(job) == wanted.failure]
        if wanted.failure_prefix is not None:
            prefix = wanted.failure_prefix
            jobs = [job for job in jobs if listed_in(job).startswith(prefix)]
    if wanted.queue and state is not State.READY:
        jobs = [job for job in jobs if job.queue == wanted.queue]
    if wanted.kind:
        jobs = [job for job in jobs if job.kind == wanted.kind]
    before = wanted.before
    if before is not None:
        if state is None or state is State.DEAD:
            jobs = [job for job in jobs if was_in_state(job, before)]
        else:
            jobs = [job for job in jobs if state_since(job) <= before]
    for matcher in wanted.matchers:
        if jobs:
            jobs = matcher(jobs)
    return jobs


#: model.md section 12.
NAME_BYTES: Final = 255


def event_time(state: EngineState, now: Now) -> float:
    """The time that the next event will have at least. Jobs that change their state from now on do so later."""
    return max(now.wall, totals(state).at)


def select(
    request: JobFilter,
    state: EngineState,
    now: Now,
    allowed: Iterable[State] | None = None,
    default: Iterable[State] | None = None,
    as_of: float | None = None,
) -> Selection:
    """A request that names no states selects the default ones, which are all allowed ones unless given. `as_of`: also
    limit the jobs to those that were in their state by then. Raises Invalid."""
    can = states(state) if allowed is None else list(allowed)
    words = {job_state.name.lower(): job_state for job_state in can}
    among = {_allowed(word, words, "") for word in request.states} or None
    terms = _terms(request)
    for term in terms:
        if term.field == "state" and not term.negated:
            at = f" at position {term.position} of the filter"
            named = {_allowed(value.text, words, at) for value in term.values}
            among = named if among is None else among & named
    before = request.as_of if as_of is None else as_of
    base = event_time(state, now) if before is None else before
    if request.older_than is not None:
        before = base - request.older_than
    if among is None:
        among = set(can if default is None else default)
    if request.failure is not None:
        among &= ENDED
    chosen = Selection(frozenset(among), request.queue or "", request.kind or "", request.tag, request.failure, before)
    return _narrow(chosen, terms, base) if terms else chosen


def _allowed(word: str, words: dict[str, State], at: str) -> State:
    if word not in words:
        raise Invalid(f'state "{word[:64]}"{at} cannot be selected here; choose from {", ".join(words)}')
    return words[word]


def _terms(request: JobFilter) -> tuple[Term, ...]:
    """Raises Invalid."""
    try:
        return parse(request.filter).terms if request.filter is not None else ()
    except BadFilter as wrong:
        raise Invalid(str(wrong)) from wrong


def _narrow(chosen: Selection, terms: Iterable[Term], now: float) -> Selection:
    """Add the words of a filter. The first word that an index answers becomes a field of the selection, so that the
    walk follows that index."""
    fields: dict[str, Any] = {"states": chosen.states}
    matchers: list[Matcher] = []
    for term in sorted(terms, key=lambda term: term.field in SEARCHING):
        field, value = term.field, term.values[0]
        is_exact = not term.negated and len(term.values) == 1 and not value.prefix
        if field == "state" and not term.negated:
            continue
        if field in ("group", "worker") and not term.negated:
            fields["states"] &= ENDED if field == "group" else LEASED_ONLY
        if field in ("queue", "kind") and is_exact and value.text and not (getattr(chosen, field) or field in fields):
            fields[field] = value.text
        elif field == "tag" and is_exact and chosen.tag is None and "tag" not in fields:
            fields["tag"] = value.text
        elif field == "group" and is_exact and chosen.failure is None and not _FAILURE & fields.keys():
            fields["failure"] = value.text
        elif field == "group" and _is_prefix(term) and chosen.failure is None and not _FAILURE & fields.keys():
            fields["failure_prefix"] = value.text
        else:
            matchers.append(matcher_of(term, now))
            if field == "id" and not term.negated and not any(each.prefix for each in term.values):
                fields.setdefault("ids", tuple(each.text for each in term.values))
    searches = any(term.field in SEARCHING for term in terms)
    return msgspec.structs.replace(chosen, **fields, matchers=tuple(matchers), searches=searches)


#: The fields of a selection that choose a failure group.
_FAILURE: Final = frozenset({"failure", "failure_prefix"})


def _is_prefix(term: Term) -> bool:
    return not term.negated and len(term.values) == 1 and term.values[0].prefix


def is_filtered(request: JobFilter) -> bool:
    """Whether the request has any filter, apart from a time."""
    named = (request.tag, request.failure, request.older_than)
    return bool(
        request.states or request.queue or request.kind or _terms(request) or any(each is not None for each in named)
    )


def missing(request: JobFilter, state: EngineState) -> dict[str, list[str]]:
    """The filters that name an unknown queue or failure group, for the first reply to a request. Jobs may match anyway,
    for example dead jobs of a removed queue. Later replies say nothing, because the request itself may have emptied
    the queue or group."""
    if request.after is not None or request.as_of is not None:
        return {}
    queue = request.queue is not None and not has_queue(state, request.queue)
    failure = request.failure is not None and failure_group(state, request.failure) is None
    for term in _terms(request):
        if not term.negated and term.field == "queue":
            queue = queue or not _is_known(term, queues_by_name(state))
        elif not term.negated and term.field == "group":
            failure = failure or not _is_known(term, failure_groups(state))
    found = [name for name, is_missing in (("queue", queue), ("failure", failure)) if is_missing]
    return {"missing": found} if found else {}


#: Names that are looked through for a prefix. With more, the prefix counts as known.
_NAMES: Final = 20_000


def _is_known(term: Term, names: Collection[str]) -> bool:
    """Whether one of the values names something."""
    if any(value.text in names for value in term.values if not value.prefix):
        return True
    prefixes = tuple(value.text for value in term.values if value.prefix)
    return bool(prefixes) and (len(names) > _NAMES or any(name.startswith(prefixes) for name in names))


def find_jobs(state: EngineState, name: int | str) -> list[Job]:
    """All live jobs with that jid, oldest first, or else the job with that number."""
    if isinstance(name, str):
        jobs = list(jobs_of_jid(state, name))
        if jobs or not (name.isascii() and name.isdecimal()):
            return jobs
    job = job_by_number(state, Number(int(name)))
    return [] if job is None else [job]


def new_name(name: str) -> str:
    """Check the name of a queue or job that need not exist. Raises Invalid."""
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES:
        raise Invalid(f"a name must have 1 to {NAME_BYTES} bytes and must not contain NUL")
    return name

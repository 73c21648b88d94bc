"""Rate limits: how many leases may begin in a time, for the jobs of a queue, of a kind, or with a name that jobs carry.

A limit is a token bucket (`Rate`). The event of a lease takes a token at the time the event carries, so a replay gives
the same state. A queue whose limit is used up looks empty to workers. A job that finds the limit of its kind or of its
name used up is held, and the jobs behind it move up. A timer frees held jobs in order when tokens are there.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import row
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import SetRates
from crossdock.model.events import JobRow, RateHeld, RatesOpened, RatesSet
from crossdock.model.job import Extra, Job, Number
from crossdock.model.records import FROM_JOBS, Rate, RateScope, RateSpec, rate_key
from crossdock.model.states import HELD, READY, move

#: Limits of queues and kinds, over all sources.
RATES_AT_MOST: Final = 10_000

#: Names that jobs carried and that are looked at when a new one comes.
_LOOKED_AT: Final = 2


# Reading.


def used_up(state: EngineState, queue: str, now: Now) -> bool:
    """Whether a limit of the queue is used up: it looks empty then."""
    return any(rate.used_up(now.steady) for rate in state.rate_index.by_queue.get(queue, ()))


def room(state: EngineState, queue: str, now: Now) -> float:
    """How many leases the limits of the queue allow now."""
    return min((rate.room(now.steady) for rate in state.rate_index.by_queue.get(queue, ())), default=inf)


def of_job(state: EngineState, job: Job) -> Iterator[Rate]:
    """The limits of its kind and of the name it carries, without those of its queue."""
    yield from state.rate_index.by_kind.get(job.kind, ())
    if job.extra is not None and job.extra.rate is not None:
        named = state.rates.get(_key(job.extra.rate.name))
        if named is not None:
            yield named


def limiting(state: EngineState, job: Job, now: Now) -> Rate | None:
    """The first limit of the job that is used up."""
    return next((rate for rate in of_job(state, job) if rate.used_up(now.steady)), None)


def _key(name: str) -> str:
    return rate_key(FROM_JOBS, RateScope.NAME, name)


class Limited:
    """Chooses among the ready jobs of a queue, before anything is applied. Jobs that are chosen use tokens; the others
    are held.
    """

    def __init__(self, state: EngineState, via: str, queue: str, now: Now) -> None:
        self._state = state
        self._via = via
        self._queue = queue
        self._now = now
        self._taken: dict[str, int] = {}
        self._rows: list[JobRow] = []
        self._keys: list[str] = []
        self._lanes: dict[str, str] = {}  #: by batch: the limit that its next job waits for

    def admits(self, job: Job) -> bool:
        """Whether the limits of the job have tokens, with those that were chosen before."""
        if not self._state.rates and (job.extra is None or job.extra.rate is None):
            return True
        batch = job.extra.resqu_batch if job.extra is not None and job.state is HELD else ""
        key = self._lanes.get(batch, "") if batch else ""
        if key or (key := self._used_up(job)):
            if batch:
                self._lanes[batch] = key
            else:
                self._rows.append(row(job))
                self._keys.append(key)
            return False
        for key in _keys(self._state, job):
            self._taken[key] = self._taken.get(key, 0) + 1
        return True

    def _used_up(self, job: Job) -> str:
        state, steady, taken = self._state, self._now.steady, self._taken
        for rate in state.rate_index.by_kind.get(job.kind, ()):
            if rate.room(steady) <= taken.get(rate.key, 0):
                return rate.key
        terms = job.extra.rate if job.extra is not None else None
        if terms is None:
            return ""
        key = _key(terms.name)
        named = state.rates.get(key)
        tokens = terms.count if named is None else named.room(steady)
        return key if tokens <= taken.get(key, 0) else ""

    def events(self) -> list[RateHeld]:
        """The event that holds the jobs that were not admitted, if there are any. A lane is named only once."""
        waits, queue = self._state.rate_index.waits, self._queue
        lanes = [
            key
            for key in dict.fromkeys(self._lanes.values())
            if (key, queue) not in waits or not waits[key, queue].lane
        ]
        if not self._rows and not lanes:
            return []
        at = later(self._state, self._now)
        return [
            RateHeld(
                at,
                via=self._via,
                queue=queue,
                steady=self._now.steady,
                rows=self._rows,
                rates=self._keys,
                lanes=lanes,
            )
        ]


def _keys(state: EngineState, job: Job) -> list[str]:
    keys = [rate.key for rate in state.rate_index.by_kind.get(job.kind, ())]
    if job.extra is not None and job.extra.rate is not None:
        keys.append(_key(job.extra.rate.name))
    return keys


# Leases.


def leased(state: EngineState, job: Job, queue: str, began: float) -> None:
    """A lease began at this steady time. It takes a token of each limit of the job."""
    index, extra = state.rate_index, job.extra
    if extra is not None and extra.held_by:
        wait = index.waits[extra.held_by, queue]
        wait.freed -= 1
        placement.not_held_by_rate(job)
        index.schedule(extra.held_by, queue)
    for rate in index.by_queue.get(queue, ()):
        rate.take(began)
        index.wait(rate.key, queue)
        index.schedule(rate.key, queue)
    for rate in index.by_kind.get(job.kind, ()):
        rate.take(began)
        index.schedule(rate.key, queue)
    if extra is not None and extra.rate is not None:
        terms = extra.rate
        key = _key(terms.name)
        named = state.rates.get(key)
        if named is None:
            _forget_some(state, began)
            named = _new(RateSpec(terms.name, RateScope.NAME, terms.name, terms.count, terms.per_s), FROM_JOBS, began)
            state.rates[key], index.names[key] = named, None
        elif (named.count, named.per_s) != (terms.count, terms.per_s):
            named.change(terms.count, terms.per_s, began)
        named.take(began)
        index.schedule(key, queue)


def _forget_some(state: EngineState, steady: float) -> None:
    """Forget names that jobs carried and whose bucket is full, as if no job had carried them. A few are looked at for
    each new name, so there are hardly more of them than are in use.
    """
    rates, names, uses = state.rates, state.rate_index.names, state.rate_index.uses
    for _ in range(min(_LOOKED_AT, len(names))):
        key = next(iter(names))
        del names[key]
        if key in uses or rates[key].level(steady) < rates[key].count:
            names[key] = None
        else:
            del rates[key]


# Holding and freeing jobs.


def rate_held(state: EngineState, event: RateHeld) -> None:
    index = state.rate_index
    for each, key in zip(event.rows, event.rates, strict=True):
        job = state.jobs[each.number]
        job_state = move(job.state, HELD)
        placement.remove(state, job)
        job.state = job_state
        job.extra = replace(job.extra or Extra(), held_by=key)
        placement.insert(state, job)
    for key in event.lanes:
        index.wait(key, event.queue).lane = True
        index.schedule(key, event.queue)


def open_due(state: EngineState, now: Now, limit: int, ended: Iterable[Number]) -> tuple[RatesOpened, dict[str, None]]:
    """The event that frees held jobs whose limits have tokens, at most `limit` of them, and the queues to wake. The
    timer of a limit may be early: then it only sets the next one.
    """
    index, steady = state.rate_index, now.steady
    opened: list[tuple[str, str]] = []
    rows: list[JobRow] = []
    keys: list[str] = []
    gone = frozenset(ended)
    for wake, key, queue in index.wakes.front(limit):
        if wake > steady or len(rows) >= limit:
            break
        opened.append((key, queue))
        wait, rate = index.waits[key, queue], state.rates.get(key)
        free = limit if rate is None else rate.room(steady) - wait.freed
        held = wait.held.front(max(0, min(free, limit - len(rows))))
        rows += [row(state.jobs[sort_key[4]]) for sort_key in held if sort_key[4] not in gone]
        keys += [key] * (len(rows) - len(keys))
    event = RatesOpened(later(state, now), steady=steady, opened=opened, rows=rows, rates=keys)
    return event, dict.fromkeys(queue for _, queue in opened)


def rates_opened(state: EngineState, event: RatesOpened) -> None:
    index = state.rate_index
    for each in event.rows:
        job = state.jobs[each.number]
        job_state = move(job.state, READY)
        placement.remove(state, job)
        job.state = job_state
        state.return_queue(job, event.at)
        placement.insert(state, job)
    for key, queue in event.opened:
        rate, wait = state.rates.get(key), index.waits.get((key, queue))
        if rate is not None:
            rate.settle(event.steady)
        if wait is not None:
            wait.lane = False
            index.schedule(key, queue)


# Configuration.


def room_for(state: EngineState, source: str, count: int) -> bool:
    """Whether this source may have that many limits."""
    others = sum(1 for rate in state.rates.values() if rate.source not in (source, FROM_JOBS))
    return others + count <= RATES_AT_MOST


def set_rates(state: EngineState, command: SetRates, now: Now) -> Decision[None]:
    known = [rate for rate in state.rates.values() if rate.source == command.source]
    before = [RateSpec(rate.name, rate.scope, rate.target, rate.count, rate.per_s) for rate in known]
    wanted = list(command.rates)
    if before == wanted:
        return (), None, ()
    event = RatesSet(later(state, now), source=command.source, steady=now.steady, rates=wanted)
    return (event,), None, tuple(rate.target for rate in known if rate.scope is RateScope.QUEUE)


def rates_set(state: EngineState, event: RatesSet) -> None:
    """A limit of the same name for the same queue or kind keeps its tokens. The timer frees the jobs of a limit that
    does not exist any more.
    """
    rates, index = state.rates, state.rate_index
    before = {key: rate for key, rate in rates.items() if rate.source == event.source}
    for key in before:
        del rates[key]
    for spec in event.rates:
        new = _new(spec, event.source, event.steady)
        known = before.get(new.key)
        if known is not None and (known.scope, known.target) == (new.scope, new.target):
            known.change(spec.count, spec.per_s, event.steady)
            new = known
        rates[new.key] = new
    index.refresh()
    changed = before.keys() | {key for key, rate in rates.items() if rate.source == event.source}
    for key, queue in [each for each in index.waits if each[0] in changed]:
        index.schedule(key, queue)


def _new(spec: RateSpec, source: str, steady: float) -> Rate:
    return Rate(
        name=spec.name,
        scope=spec.scope,
        target=spec.target,
        count=spec.count,
        per_s=spec.per_s,
        source=source,
        tokens=float(spec.count),
        at=steady,
    )

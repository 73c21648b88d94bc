"""Outcomes: how a job with `keep_result_s` ended that is not kept. A client that asks for its result finds it there.

A job that succeeded is kept with its result for that time, and a dead job is kept anyway. So only jobs that were
removed have an outcome: cancelled ones, and dead ones that were deleted.
"""

from collections.abc import Iterable
from math import inf
from typing import Final

from crossdock.engine.decision import FollowUps
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import Expired, Removed
from crossdock.model.events.extensions import OutcomesDated
from crossdock.model.job import Job
from crossdock.model.records import Outcome
from crossdock.model.states import OVER

#: Above this number the oldest is forgotten.
AT_MOST: Final = 100_000

#: The end of the time that a job is kept, after which its outcome is not remembered either.
_OVER: Final = frozenset({"ttl", "purged"})


def removed(state: EngineState, follow_ups: FollowUps, job: Job, keep_s: float, event: Removed) -> None:
    """Remember the outcome of a job that was removed without success."""
    if event.why in _OVER:
        return
    jid, error = job.jid, job.extra.error if job.extra is not None else None
    forget(state, jid)
    if job.state in OVER:
        group, message = (error.group, error.message) if error is not None else ("", "")
        outcome = Outcome("dead", job.attempts, group, message, keep_s)
    else:
        outcome = Outcome("cancelled", job.attempts, "cancelled", event.reason or event.why, keep_s)
    state.outcomes[jid] = outcome
    if len(state.outcomes) > AT_MOST:
        forget(state, next(iter(state.outcomes)))
    follow_ups.append(FollowUp(outcome=jid))


def forget(state: EngineState, jid: str) -> None:
    known = state.outcomes.pop(jid, None)
    if known is not None and known.until < inf:
        state.outcome_ends.remove((known.until, jid))


def date(state: EngineState, touched: Iterable[FollowUp], at: float, now: Now) -> list[OutcomesDated]:
    """Set the ends of outcomes that were just written."""
    ends = {
        jid: now.steady + known.keep_s
        for jid in dict.fromkeys(each.outcome for each in touched)
        if (known := state.outcomes.get(jid)) is not None and known.until == inf
    }
    return [OutcomesDated(at, ends)] if ends else []


def outcomes_dated(state: EngineState, event: OutcomesDated) -> None:
    for jid, end in event.ends.items():
        state.outcomes[jid].until = end
        state.outcome_ends.add((end, jid))


def expired(state: EngineState, event: Expired) -> None:
    """An event of the same tick may have written a new one."""
    for jid in event.outcomes:
        known = state.outcomes.get(jid)
        if known is not None and known.until <= event.steady:
            forget(state, jid)

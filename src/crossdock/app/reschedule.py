"""The job that the outcome Reschedule pushes."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from crossdock.app.foreign import arguments_of
from crossdock.app.outcomes import Reschedule
from crossdock.app.task import PreparedJob, Task
from crossdock.client.jobs import FetchedJob, NewJob

if TYPE_CHECKING:
    from crossdock.app.app import App

_NUMBERED: Final = re.compile(r"(.*)~(\d{1,9})", re.DOTALL)
_SHORTEST: Final = 8
_LONGEST: Final = 255


def next_jid(jid: str) -> str:
    """The ID of the job that follows: `abc~1` after `abc`, `abc~2` after that. An execution that is repeated makes the
    same ID."""
    numbered = _NUMBERED.fullmatch(jid)
    following = f"{numbered[1]}~{int(numbered[2]) + 1}" if numbered else f"{jid}~1"
    if _SHORTEST <= len(following.encode()) <= _LONGEST:
        return following
    return hashlib.sha256(following.encode()).hexdigest()[:24]


def rescheduled(app: App, task: Task[..., Any], job: FetchedJob, outcome: Reschedule) -> NewJob:
    """The new job. It belongs to the batch of the old one, so that the batch waits for it.

    It takes no unique lock, because the old job holds it until it is settled. Raises BadArgument.
    """
    new = _work(task, job, outcome)
    at: Any = new.at
    if outcome.delay_s is not None:
        at = app.now() + outcome.delay_s
    elif outcome.at is not None:
        at = outcome.at
    return msgspec.structs.replace(
        new,
        jid=next_jid(job.jid),
        at=at,
        batch=new.batch or job.batch,
        unique_for_s=None,
        unique_until=None,
        unique_key=None,
    )


def _work(task: Task[..., Any], job: FetchedJob, outcome: Reschedule) -> NewJob:
    work = outcome.work
    if isinstance(work, PreparedJob):
        return work.new_job
    if work is not None:
        return work.job(*outcome.args_of_work, **outcome.kwargs_of_work).new_job
    args, kwargs = arguments_of(job, unpack=task.settings.unpack)
    decoded, named = task.signature.decode(args, kwargs)
    again = task.options(queue=job.queue, tags=[each for each in job.tags if each not in task.settings.tags])
    return msgspec.structs.replace(again.job(*decoded, **named).new_job, retries=job.retry, priority=job.priority)

"""Outcomes: what a task returns, or raises, to end its job in another way than by a result or an error.

They are exceptions so that a function deep inside a task can raise them. A task returns them in all other cases, since
`except Exception` in the task would catch a raised one.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from crossdock.client.durations import Duration, seconds

if TYPE_CHECKING:
    from crossdock.app.task import PreparedJob, Task


class OutcomeBase(Exception):
    """Base of all outcomes. `why` is shown to operators."""

    why: str

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class Retry(OutcomeBase):
    """Fail this try and run the job again, after `in_` or else the usual delay.

    It counts as a failure: a job that has no tries left is dead.
    """

    def __init__(self, in_: Duration | None = None, why: str = "") -> None:
        super().__init__(why)
        self.delay_s: float | None = None if in_ is None else seconds(in_)


class Snooze(OutcomeBase):
    """Run the job again after `in_`. It does not count as a failure."""

    def __init__(self, in_: Duration, why: str = "") -> None:
        super().__init__(why)
        self.delay_s: float = seconds(in_)


class Cancel(OutcomeBase):
    """Give up: no more tries, and the job is dead with the reason `why`. Waiting for its result raises JobCancelled."""


class Reschedule(OutcomeBase):
    """End this job and push another one: `work`, or the same job again without it.

    `work` is a task with its arguments, as in `Reschedule(resize, 42, size="small")`, or a prepared job, as in
    `Reschedule(resize.job(42, size="small"))`, which type checkers check. This job succeeds, or fails without more
    tries with `as_failure`.

    The ID of the new job is derived from the ID of this one. An execution that is repeated, because the worker was
    killed before it could report, pushes no second job.
    """

    def __init__(
        self,
        work: PreparedJob[Any] | Task[..., Any] | None = None,
        /,
        *args: Any,
        in_: Duration | None = None,
        at: datetime | None = None,
        as_failure: bool = False,
        why: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(why)
        if in_ is not None and at is not None:
            raise ValueError("Reschedule takes either in_ or at")
        self.work = work
        self.args_of_work = args
        self.kwargs_of_work = kwargs
        self.delay_s: float | None = None if in_ is None else seconds(in_)
        self.at = at
        self.as_failure = as_failure


#: The outcomes, for annotations: `def task() -> str | Outcome`.
Outcome: TypeAlias = Retry | Snooze | Cancel | Reschedule

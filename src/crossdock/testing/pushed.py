"""The record of pushed jobs, taken from the engine's events: what the server accepted, whichever client pushed it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from crossdock.engine.state import EngineState
from crossdock.model.events import AnyEvent, BatchCallbackPushed, Pushed, Spawned
from crossdock.model.job import Form, Number, Spec


class PushedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the server has accepted. Arguments have passed through JSON."""

    jid: str
    kind: str
    queue: str
    args: list[Any]
    kwargs: dict[str, Any]
    at: datetime | None  #: when a scheduled job becomes ready; None: at once
    retries: int  #: tries after the first one; negative: the job is dead when it fails
    tags: tuple[str, ...]
    depends_on: tuple[str, ...]  #: IDs of jobs that must succeed first and are not yet removed
    batch: str  #: ID of its batch
    custom: dict[str, Any]  #: all other data
    source: Literal["push", "schedule", "callback"]  #: a client, a cron schedule, or a batch that ended
    number: int  #: of the server; ascending in the order of pushes


class PushRecord:
    """All jobs that were pushed, in order."""

    def __init__(self) -> None:
        self.jobs: list[PushedJob] = []

    def observe(self, state: EngineState, events: Sequence[AnyEvent]) -> None:
        for event in events:
            if isinstance(event, Pushed):
                for number, spec in enumerate(event.specs, event.number):
                    self.jobs.append(_pushed(state, number, spec, "push"))
            elif isinstance(event, Spawned) and event.number:
                self.jobs.append(_pushed(state, event.number, event.spec, "schedule"))
            elif isinstance(event, BatchCallbackPushed):
                self.jobs.append(_pushed(state, event.number, event.spec, "callback"))


def _pushed(
    state: EngineState, number: Number, spec: Spec, source: Literal["push", "schedule", "callback"]
) -> PushedJob:
    extra = spec.extra
    custom: dict[str, Any] = msgspec.json.decode(extra.custom) if extra is not None and extra.custom else {}
    kwargs = custom.pop("kwargs", None)
    links = extra.links if extra is not None else None
    needed = [state.jobs.get(each) for each in links.depends_on] if links is not None else []
    return PushedJob(
        jid=spec.jid,
        kind=spec.kind,
        queue=spec.queue,
        args=msgspec.json.decode(spec.payload) if spec.form is Form.JSON else [],
        kwargs=kwargs if isinstance(kwargs, dict) else {},
        at=datetime.fromtimestamp(spec.due, UTC) if spec.due else None,
        retries=spec.policy.max_failures,
        tags=tuple(str(tag) for tag in extra.tags) if extra is not None else (),
        depends_on=tuple(job.jid for job in needed if job is not None),
        batch=links.batch if links is not None else "",
        custom=custom,
        source=source,
        number=number,
    )

"""Redact secrets in texts that workers send about a job.

The event stores the redacted text beside the original, because the lake has no access to the payload that the text may
quote. The function that finds secrets is an argument of the engine.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from crossdock.model.job import Failure, Job

#: Texts, and the payloads they may quote. Returns the redacted texts, None if there was nothing to redact.
Redact = Callable[[Sequence[str], Sequence[bytes]], tuple[str, ...] | None]


def shown(redact: Redact, job: Job, failure: Failure, payload: bytes | None) -> Failure | None:
    """The redacted failure. `payload` is the new payload of the job, if it changes."""
    texts = redact((failure.group, failure.message, *failure.backtrace), _bodies(job, payload))
    if texts is None:
        return None
    group, message, *backtrace = texts
    return replace(failure, group=group, message=message, backtrace=tuple(backtrace))


def note(redact: Redact, job: Job, text: str) -> str | None:
    texts = redact((text,), _bodies(job, None))
    return None if texts is None else texts[0]


def _bodies(job: Job, payload: bytes | None) -> tuple[bytes, ...]:
    return job.payload, payload or b"", job.extra.custom if job.extra is not None else b""

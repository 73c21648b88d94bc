"""What workers say of a job may quote its secrets. Their words as history may have them go into the event beside the
words themselves: the journal is the last that knows the job's payload.

Which fields are secret, and how their values are found in a text, is handed in, as time and chance are.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from crossdock.model.job import Failure, Job

#: Texts, and the bodies they may quote: the texts without what must not be told, None if nothing of it is in them.
Redact = Callable[[Sequence[str], Sequence[bytes]], tuple[str, ...] | None]


def shown(redact: Redact, job: Job, failure: Failure, payload: bytes | None) -> Failure | None:
    """`payload` is what the job is to have from now on."""
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

"""The JSON text of a job to push, for a server with or without extensions."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from crossdock.client.errors import InvalidJob, PayloadTooLarge, Unsupported
from crossdock.client.jobs import NewJob
from crossdock.client.wire import Features

encode: Final = msgspec.json.Encoder().encode

#: Fields that are members of an extension, with its name. They have their default if the job does not need it.
_EXTENDED: Final[tuple[tuple[str, str, Any], ...]] = (
    ("tags", "tags", ()),
    ("depends_on", "dependencies", ()),
    ("keep_result_s", "results", 0),
    ("rate", "rates", None),
    ("unique_key", "once", None),
)
_ENCODING: Final = (TypeError, ValueError, OverflowError, RecursionError)  # also msgspec.DecodeError


def job_text(job: NewJob, features: Features) -> bytes:
    """A job as a JSON object. Raises InvalidJob, PayloadTooLarge or Unsupported."""
    try:
        if features.complete and (
            job.at is None
            and job.kwargs is None
            and job.custom is None
            and job.lease_s is None
            and job.unique_for_s is None
            and not job.batch
            and not job.track
            and job.unique_key is None
            and job.unique_until is None
            and job.rate is None
        ):
            text = b'{"once":true,' + encode(job)[1:]
        else:
            text = encode(job_members(job, features))
    except _ENCODING as error:
        raise _not_encodable(job, error) from error
    if b"null" in text:
        _refuse_nan(job)
    if len(text) > features.job_bytes:
        raise PayloadTooLarge(
            f"job {job.jid} ({job.kind}) has {len(text):,} bytes, and the server accepts {features.job_bytes:,}; "
            "store the data elsewhere and push a reference to it, or raise faktory.line_mib"
        )
    return text if b"\n" not in text else text.replace(b"\n", b" ")  # a blank in a text that the caller has encoded


def job_members(job: NewJob, features: Features) -> dict[str, Any]:
    """The members of a job that has some which are not sent as they are, or of any job for a plain server."""
    made: dict[str, Any] = {
        "jid": job.jid,
        "jobtype": job.kind,
        "queue": job.queue,
        "args": job.args,
        "retry": job.retries,  # always, because Faktory 1.10 takes a given value as the default of later jobs
    }
    if job.at is not None:
        made["at"] = timestamp(job.at)
    if job.priority is not None:
        made["priority"] = job.priority
    if job.lease_s is not None:
        made["reserve_for"] = math.ceil(job.lease_s)
    custom = _custom(job)
    if custom is not None:
        made["custom"] = custom
    extensions = features.extensions
    for field, extension, default in _EXTENDED:
        value = getattr(job, field)
        if value != default:
            if extension not in extensions:
                raise Unsupported(extension, f"{field} of job {job.jid} ({job.kind})")
            if field != "unique_key":
                made[field] = value
    if features.once:
        made["once"] = True
    return made


def _custom(job: NewJob) -> dict[str, Any] | msgspec.Raw | None:
    own: dict[str, Any] = {}
    if job.kwargs is not None:
        own["kwargs"] = job.kwargs
    if job.batch:
        own["bid"] = job.batch
    if job.track:
        own["track"] = 1
    if job.unique_for_s is not None:
        own["unique_for"] = job.unique_for_s
    if job.unique_until is not None:
        own["unique_until"] = job.unique_until
    if job.unique_key is not None:
        own["unique_key"] = job.unique_key
    if not own or job.custom is None:
        return own or (dict(job.custom) if isinstance(job.custom, Mapping) else job.custom)
    if isinstance(job.custom, msgspec.Raw):
        return msgspec.json.decode(job.custom, type=dict[str, msgspec.Raw]) | own
    return {**job.custom, **own}


def timestamp(at: datetime | float | str) -> str:
    """An RFC 3339 text in UTC. Raises InvalidJob."""
    if isinstance(at, str):
        return at
    try:
        when = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
        if when.tzinfo is None:
            raise InvalidJob(f"at is {when.isoformat()} without a time zone; use datetime.now(UTC) or another zone")
        return when.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError, OSError, TypeError) as error:
        raise InvalidJob(f"at is {at!r}, which is not a time: {error}") from error


def _refuse_nan(job: NewJob) -> None:
    """The encoder writes numbers that JSON does not have as null. Raises InvalidJob."""
    for name, value in _named(job):
        if _has_nan(value):
            raise InvalidJob(
                f"{name} of {job.kind} cannot be sent as JSON: it is or contains a number that is not finite"
            )


def _has_nan(value: Any) -> bool:
    """Looks into what most arguments are made of. Circles and great depths were refused before."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_has_nan, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_nan, value))


def _named(job: NewJob) -> list[tuple[str, Any]]:
    """The values that a caller has given, with their names."""
    named: list[tuple[str, Any]] = []
    if isinstance(job.args, (list, tuple)):
        named += [(f"argument {number}", each) for number, each in enumerate(job.args, 1)]
    if isinstance(job.kwargs, Mapping):
        named += [(f"argument {name!r}", each) for name, each in job.kwargs.items()]
    return [*named, ("custom", job.custom)]


def _not_encodable(job: NewJob, error: Exception) -> InvalidJob:
    """Names the argument, which the error of the encoder does not."""
    for name, value in _named(job):
        try:
            encode(value)
        except _ENCODING:
            return InvalidJob(
                f"{name} of {job.kind} cannot be sent as JSON: {error}; pass texts, numbers, lists, dicts and the like"
            )
    return InvalidJob(f"job {job.jid} ({job.kind}) cannot be sent as JSON: {error}")

"""Limits of a task: unique jobs and rates."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from crossdock.app.errors import BadTask
from crossdock.client.durations import Duration, seconds

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_RATE: Final = re.compile(r"\s*(\d{1,9})\s*/\s*(.{1,50}?)\s*")
#: Longer keys are replaced by their digest.
_KEY_BYTES: Final = 200


class Unique(msgspec.Struct, frozen=True):
    """A second job with the same key is refused while the first is there, for at most `for_`.

    The key is made from all arguments, or from those that `by` names. The lock is freed when the job succeeds, or with
    `until="start"` when a worker takes it.
    """

    for_: Duration
    until: Literal["success", "start"] = "success"
    by: tuple[str, ...] = ()


#: How a task is made unique: a duration, a `Unique`, or a dict with its fields.
UniqueLike: TypeAlias = Duration | Unique | Mapping[str, Any]


class UniqueTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A `Unique` that was checked."""

    for_s: float
    until: Literal["success", "start"]
    by: tuple[str, ...]


def unique_of(task: str, given: UniqueLike | None) -> UniqueTerms | None:
    """Raises BadTask."""
    if given is None:
        return None
    try:
        if isinstance(given, Mapping):
            fields = {**given, "by": _names(given.get("by", ()))}
            if "for" in fields:  # a keyword of Python, but a usual key of a dict
                fields["for_"] = fields.pop("for")
            found = Unique(**fields)
        else:
            found = given if isinstance(given, Unique) else Unique(given)
        if found.until not in ("success", "start"):
            raise ValueError(f"until is success or start, not {found.until!r}")
        for_s = seconds(found.for_)
    except (TypeError, ValueError) as error:
        raise BadTask(f"{task}: unique: {error}") from error
    if for_s <= 0:
        raise BadTask(f"{task}: unique: the duration must be more than 0 seconds")
    return UniqueTerms(for_s=for_s, until=found.until, by=_names(found.by))


def key_of(values: bytes, task: str = "") -> str:
    """A name made of the values of arguments, and of a task if there is one. It is readable if it is short."""
    key = b"%b:%b" % (task.encode(), values) if task else values
    return key.decode() if len(key) <= _KEY_BYTES else hashlib.sha256(key).hexdigest()


class TaskRate(msgspec.Struct, frozen=True, kw_only=True):
    """At most `count` jobs are started in `per_s` seconds. With `by` the limit holds for each value of an argument."""

    count: int
    per_s: float
    by: tuple[str, ...] = ()


def rate_of(what: str, rate: str | None, by: str | Sequence[str] | None = None) -> TaskRate | None:
    """Read `10/m`, `100/30s` or `5/2 hours`. Raises BadTask; `what` is named in its text."""
    if rate is None:
        if by is not None:
            raise BadTask(f'{what}: rate_key needs a rate, such as rate="10/m"')
        return None
    parts = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    try:
        if parts is None:
            raise ValueError
        per_s = _UNITS[parts[2]] if parts[2] in _UNITS else seconds(parts[2])
    except ValueError:
        raise BadTask(
            f'{what}: {rate!r} is not a rate; write a count and a time, such as "10/m" or "100/30s"'
        ) from None
    if not int(parts[1]) or not 0 < per_s < math.inf:
        raise BadTask(f"{what}: the rate {rate!r} lets no job start; both numbers must be more than 0")
    return TaskRate(count=int(parts[1]), per_s=per_s, by=_names(by or ()))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)

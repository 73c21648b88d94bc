"""Times in the output of commands: in UTC, or with --local in the zone of this machine and with its offset."""

from datetime import UTC, datetime
from typing import Any, Final

import click

#: Fields of the server's replies that are times. A text of a client in another field may look like one.
_FIELDS: Final = frozenset(
    {"at", "created", "ends", "expires", "first_at", "first_seen", "next", "next_at", "since", "started", "tracked"}
    | {"updated"}
)


def stamp(text: str | None, *, seconds: bool = False) -> str:
    """A time of the server, which sends RFC 3339 in UTC. `seconds`: without the fraction. None: `-`."""
    if text is None:
        return "-"
    whole = text if not seconds else f"{text[:19]}Z"
    if not is_local():
        return whole
    try:
        return datetime.fromisoformat(whole).astimezone().isoformat()
    except (ValueError, OverflowError, OSError):  # no date, or beyond the calendar in this zone
        return whole


def field(name: str, value: Any) -> str:
    """The value of a field of a reply, which may be a time."""
    return stamp(value) if name in _FIELDS and isinstance(value, str) else str(value)


def instant(at: float) -> str:
    """Seconds since 1970 as a date and time with its zone, in whole seconds."""
    try:
        when = datetime.fromtimestamp(at, UTC)
        if not is_local():
            return when.strftime("%Y-%m-%d %H:%M:%S UTC")
        return when.astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):  # a server's clock may have had any value
        return f"{at:.0f} s after 1970"


def minute(at: datetime, *, year: bool = False) -> str:
    """A time of a table. Times without a zone are UTC. The year is left out unless `year` is set."""
    when = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    if is_local():
        shown = when.astimezone().isoformat(" ", "minutes")
    else:
        shown = when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC" if year else "%Y-%m-%d %H:%M")
    return shown if year else shown[5:]


def hour(at: datetime) -> str:
    """An hour of a table. A zone may be half an hour beside it, so a local time has minutes."""
    return minute(at) if is_local() else f"{at:%m-%d %H}h"


def is_local() -> bool:
    """Whether --local was given, before the command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("local"))

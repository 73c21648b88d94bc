"""What is written on the command line about a job: options of a door, JSON, times."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from crossdock.cli.filters import span

#: The options of `push` that not every door has.
_OF_DOORS: Final = ("jid", "priority", "at", "retry", "reserve_for", "ttl", "custom", "tags", "needs")


def given(values: dict[str, Any], door: str, *known: str) -> dict[str, Any]:
    """The options of a door that were given, taken out of `values`. One that only others know is wrong usage."""
    found = {name: value for name in _OF_DOORS if (value := values.pop(name)) not in (None, ())}
    for name in found:
        if name not in known:
            flag = {"tags": "tag"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{flag} means nothing to the {door} door")
    return found


def json_text(what: str, text: str, begins: str) -> msgspec.Raw:
    """Checked here, and sent as it was written. `begins` is what it must begin with, nothing: anything."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
        if not text.lstrip().startswith(begins):
            raise ValueError("of another type")
    except (ValueError, UnicodeEncodeError) as error:
        raise click.UsageError(f"{what} must be a JSON {_SHAPES[begins]}; in a shell it needs quotes") from error
    return msgspec.Raw(text.replace("\n", " ").encode())


_SHAPES: Final = {
    "[": "array, such as '[1, \"two\"]'",
    "{": "object, such as '{\"track\": 1}'",
    "": "value, such as '{\"id\": 42}' or '\"two words\"'",
}


def moment(text: str) -> str:
    """A time, or that long from now, in UTC as all protocols take it."""
    seconds = span(text)
    try:
        at = _instant(text) if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise click.UsageError(f"--at {text!r} is beyond the calendar; write for example 10m or 7d") from error


def delay(text: str) -> float:
    """Seconds until a time, or that long from now."""
    seconds = span(text)
    return max(0.0, (_instant(text) - datetime.now(UTC)).total_seconds()) if seconds is None else seconds


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        why = "is no time" if at is None else "names no time zone"
        raise click.UsageError(
            f"--at {text!r} {why}; write a date and time with its zone, 2026-12-01T03:00:00Z or "
            "2026-12-01T03:00:00+01:00, or a span from now, 45s, 10m, 2h or 7d"
        )
    return at


def whole_second(time: str) -> str:
    """The same time without its fraction, for servers that have whole seconds."""
    return re.sub(r"\.\d+(?=Z$)", "", time)

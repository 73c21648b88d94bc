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
    """A time as it is written, or so long from now."""
    seconds = span(text)
    if seconds is None:
        return text  # the server says what is wrong with it
    try:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise click.UsageError(f"--at {text!r} is beyond the calendar; write for example 10m or 7d") from error


def delay(text: str) -> float:
    """Seconds until a time as it is written, or that long from now."""
    seconds = span(text)
    if seconds is not None:
        return seconds
    try:
        at = datetime.fromisoformat(text)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError) as error:  # TypeError: a time without its zone
        raise click.UsageError(f"--at {text!r} is no time; write for example 2026-12-01T03:00:00Z, or 10m") from error


def whole_second(time: str) -> str:
    """The same time without its fraction, for servers that have whole seconds."""
    return re.sub(r"\.\d+(?=Z$)", "", time)

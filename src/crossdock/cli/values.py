"""What is written on the command line about a job: options of a door, JSON, times."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from crossdock.cli.filters import span


def given(values: dict[str, Any], door: str, known: Sequence[str], foreign: Sequence[str]) -> dict[str, Any]:
    """The options of a door that were given, taken out of `values`. One that only others know is wrong usage."""
    found = {name: value for name in (*known, *foreign) if (value := values.pop(name)) is not None}
    for name in foreign:
        if name in found:
            raise click.UsageError(f"--{name} means nothing to the {door} door")
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
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def whole_second(time: str) -> str:
    """The same time without its fraction, for servers that have whole seconds."""
    return re.sub(r"\.\d+(?=Z$)", "", time)

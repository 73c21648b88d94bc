"""Values on the command line: names, spans, times and JSON."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from crossdock.protocols.admin.filter_language import read_span, read_time


class Span(click.ParamType[float]):
    """`90`, `45s`, `10m`, `2h`, `7d`, `3w`."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = read_span(value) if isinstance(value, str) else float(value)
        if seconds is None:
            self.fail(f"{value!r} is not a span of time; write for example 45s, 10m, 2h or 7d", param, ctx)
        return seconds


class Seconds(click.FloatRange):
    """A number of seconds in a range. click lets `nan` pass, which is in no range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return found


class Name(click.ParamType[str]):
    """A text that is not empty, so that an unset shell variable neither selects every job nor names a new one."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            flag = isinstance(param, click.Option) and not param.required
            self.fail(f"it is empty; give a name{', or leave the flag out' if flag else ''}", param, ctx)
        return str(value)


class PastTime(click.ParamType[float]):
    """An instant, or a span before now: `2026-11-01`, `2026-11-01T12:00:00Z`, `2d`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not isinstance(value, str):
            return float(value)
        ago = read_span(value)
        if ago is not None:
            return time.time() - ago
        found = read_time(value)
        if found is None:
            self.fail(f"{value!r} is not a time; write 2026-11-01, 2026-11-01T12:00:00Z, or 2h (ago)", param, ctx)
        return found


def json_text(what: str, text: str, begins: str) -> msgspec.Raw:
    """Check JSON text and keep it as written. `begins` is the character it must begin with; empty: any JSON."""
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
    """A time, or a span from now, in UTC as all protocols take it."""
    seconds = read_span(text)
    try:
        at = _instant("--at", text) if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise click.UsageError(f"--at {text!r} is beyond the calendar; write for example 10m or 7d") from error


def delay(text: str) -> float:
    """Seconds until a time, or a span from now."""
    seconds = read_span(text)
    return max(0.0, (_instant("--at", text) - datetime.now(UTC)).total_seconds()) if seconds is None else seconds


def future(flag: str, text: str) -> float:
    """Seconds since 1970 of a time, or of a span from now."""
    seconds = read_span(text)
    return _instant(flag, text).timestamp() if seconds is None else time.time() + seconds


def _instant(flag: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        why = "is not a time" if at is None else "names no time zone"
        raise click.UsageError(
            f"{flag} {text!r} {why}; write a date and time with its zone, 2026-12-01T03:00:00Z or "
            "2026-12-01T03:00:00+01:00, or a span from now, 45s, 10m, 2h or 7d"
        )
    return at


def whole_second(time: str) -> str:
    """The same time without its fraction, for protocols with whole seconds."""
    return re.sub(r"\.\d+(?=Z$)", "", time)

"""Values on the command line: names, spans, times, JSON, and the flags that choose jobs."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from crossdock.cli import completion
from crossdock.cli.render.tables import clean
from crossdock.client.base import Refused
from crossdock.model.states import State

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

#: The states a job can be found in.
STATES: Final = tuple(state.name.lower() for state in State if state is not State.GONE)


class Span(click.ParamType[float]):
    """`90`, `45s`, `10m`, `2h`, `7d`, `3w`."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = span(value) if isinstance(value, str) else float(value)
        if seconds is None:
            self.fail(f"{value!r} is not a span of time; write for example 45s, 10m, 2h or 7d", param, ctx)
        return seconds


def span(text: str) -> float | None:
    match = _SPAN.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match is not None and len(text) < 16 else None


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
        ago = span(value)
        if ago is not None:
            return time.time() - ago
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time; write 2026-11-01, 2026-11-01T12:00:00Z, or 2h (ago)", param, ctx)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def filtered(*states: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --state (one of these), --queue, --kind, --tag, --failure and --older-than."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--older-than", type=Span(), metavar="SPAN", help="In its state for longer: 45s, 10m, 7d."),
            click.option(
                "--failure",
                type=Name(),
                metavar="GROUP",
                help="Failed or dead, in this failure group.",
                shell_complete=completion.failures,
            ),
            click.option("--tag", type=Name(), metavar="TAG", help="With this tag.", shell_complete=completion.tags),
            click.option("--kind", type=Name(), metavar="KIND", help="Of this kind (Faktory jobtype)."),
            click.option(
                "--queue", type=Name(), metavar="QUEUE", help="In this queue.", shell_complete=completion.queues
            ),
            click.option(
                "--state",
                "states",
                type=click.Choice(states),
                multiple=True,
                help="In this state. May be repeated.",
            ),
        ):
            verb = option(verb)
        return verb

    return add


def chosen(values: dict[str, Any]) -> dict[str, Any]:
    """The job filters that were given, as the server takes them. They are removed from `values`."""
    found = {name: values.pop(name) for name in ("states", "queue", "kind", "tag", "failure", "older_than")}
    found["states"] = list(found["states"])
    return {name: value for name, value in found.items() if value not in (None, [])}


def expect(found: int, answer: dict[str, Any], filters: dict[str, Any]) -> None:
    """`answer` is the first one to these filters. Raises Refused if no job matched and a name does not exist."""
    missing = [_NOT_FOUND[name].format(clean(filters[name])) for name in answer.get("missing", ())]
    if not found and missing:
        raise Refused("; ".join(missing))


_NOT_FOUND: Final = {
    "queue": "queue {} not found; crossdock queue list shows all",
    "failure": "failure group {} not found; crossdock failure list shows all",
}


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
    seconds = span(text)
    try:
        at = _instant("--at", text) if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise click.UsageError(f"--at {text!r} is beyond the calendar; write for example 10m or 7d") from error


def delay(text: str) -> float:
    """Seconds until a time, or a span from now."""
    seconds = span(text)
    return max(0.0, (_instant("--at", text) - datetime.now(UTC)).total_seconds()) if seconds is None else seconds


def future(flag: str, text: str) -> float:
    """Seconds since 1970 of a time, or of a span from now."""
    seconds = span(text)
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

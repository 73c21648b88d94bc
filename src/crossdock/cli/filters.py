"""The flags that choose jobs, and what they mean to the server."""

import re
from collections.abc import Callable
from typing import Any, Final

import click

from crossdock.cli.show import clean
from crossdock.client.base import Refused
from crossdock.model.states import State

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)", re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

#: Those a job can be found in.
STATES: Final = tuple(state.name.lower() for state in State if state is not State.GONE)


class Span(click.ParamType[float]):
    """`90`, `45s`, `10m`, `2h`, `7d`, `3w`."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = span(value) if isinstance(value, str) else float(value)
        if seconds is None:
            self.fail(f"{value!r} is no span of time; write for example 45s, 10m, 2h or 7d", param, ctx)
        return seconds


def span(text: str) -> float | None:
    match = _SPAN.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match is not None and len(text) < 16 else None


class Seconds(click.FloatRange):
    """`nan` is in no range, and click lets it pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return found


class Name(click.ParamType[str]):
    """Never empty: a shell variable that is not set must neither choose every job nor name a new one."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            flag = isinstance(param, click.Option) and not param.required
            self.fail(f"it is empty; name one{', or leave the flag out' if flag else ''}", param, ctx)
        return str(value)


def filtered(*states: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --state (one of these), --queue, --kind, --tag, --failure and --older-than."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--older-than", type=Span(), metavar="SPAN", help="In its state for longer: 45s, 10m, 7d."),
            click.option("--failure", type=Name(), metavar="GROUP", help="Failed or dead, of this failure group."),
            click.option("--tag", type=Name(), metavar="TAG", help="With this tag."),
            click.option("--kind", type=Name(), metavar="KIND", help="Of this kind (Faktory jobtype)."),
            click.option("--queue", type=Name(), metavar="QUEUE", help="Of this queue."),
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


def expect(found: int, answer: dict[str, Any], filters: dict[str, Any]) -> None:
    """`answer` is the first one to these filters. Raises Refused if nothing was found because a name is not there."""
    missing = [f"there is no {_THINGS[name].format(clean(filters[name]))}" for name in answer.get("missing", ())]
    if not found and missing:
        raise Refused("; ".join(missing))


_THINGS: Final = {
    "queue": "queue {}; crossdock queues lists them",
    "failure": "failure group {}; crossdock failures lists them",
}


def chosen(values: dict[str, Any]) -> dict[str, Any]:
    """The filters as the server takes them; only those that were given."""
    found = {name: values.pop(name) for name in ("states", "queue", "kind", "tag", "failure", "older_than")}
    found["states"] = list(found["states"])
    return {name: value for name, value in found.items() if value not in (None, [])}

"""Filters on the command line: words of the filter language, and the flags that are short for some of them."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand
from crossdock.cli.parameters import Name, Span
from crossdock.cli.render.tables import clean
from crossdock.client.errors import Refused
from crossdock.protocols.admin.filter_language import BadFilter, is_word, parse, quoted

_HEAD: Final = re.compile(r"-?[A-Za-z_]+:")
_NEGATED: Final = re.compile(r"-[A-Za-z_]+:")


class FilterCommand(AdminCommand):
    """A command that takes words of a filter. `-state:dead` is such a word, not a flag."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        negated = [each for each in args[:end] if _NEGATED.match(each)]
        flags = [each for each in args[:end] if each not in negated]
        return super().parse_args(ctx, [*flags, "--", *negated, *args[end + 1 :]] if negated else args)


def flags(*states: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --state (one of these), --queue, --kind, --tag, --failure and --older-than."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--older-than", type=Span(), metavar="SPAN", help="In its state for longer: 45s, 10m, 7d."),
            click.option(
                "--failure",
                type=Name(),
                metavar="GROUP",
                help="Failed or dead, in this failure group, or in groups that begin so: 'Time*'.",
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


def chosen(values: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """The job filters that were given, as the server takes them. The flags are removed from `values`."""
    found = {name: values.pop(name) for name in ("states", "queue", "kind", "tag", "failure", "older_than")}
    found["states"] = list(found["states"])
    texts = [word_of(each) for each in words]
    failure = found["failure"]
    if failure is not None and failure.endswith("*"):
        found["failure"] = None
        texts.append(f"group:{quoted(failure.removesuffix('*'))}*")
    found["filter"] = " ".join(texts) or None
    return {name: value for name, value in found.items() if value not in (None, [])}


def word_of(argument: str) -> str:
    """An argument as a word. A shell has removed the quotes of `error:"timed out"`, so they are added again. An
    argument that has quotes, or consists of several words, is a filter as it is."""
    if '"' in argument or not re.search(r"\s", argument) or all(map(is_word, argument.split())):
        return argument
    head = _HEAD.match(argument) if is_word(argument) else None
    return argument[: head.end()] + quoted(argument[head.end() :]) if head is not None else quoted(argument)


def expect(found: int, answer: dict[str, Any], filters: dict[str, Any]) -> None:
    """`answer` is the first one to these filters. Raises Refused if no job matched and a name does not exist."""
    missing = [_NOT_FOUND[name].format(clean(_names(name, filters))) for name in answer.get("missing", ())]
    if not found and missing:
        raise Refused("; ".join(missing))


def _names(field: str, filters: dict[str, Any]) -> str:
    """The queues or failure groups that the filters name."""
    names = [filters[field]] if field in filters else []
    word = "group" if field == "failure" else field
    try:
        terms = parse(filters.get("filter", "")).terms
    except BadFilter:  # of another version of the server
        terms = ()
    names += [value.text for term in terms if term.field == word and not term.negated for value in term.values]
    return ", ".join(names)


_NOT_FOUND: Final = {
    "queue": "queue {} not found; crossdock queue list shows all",
    "failure": "failure group {} not found; crossdock failure list shows all",
}

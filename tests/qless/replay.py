"""Recorded conversations with the real scripts, replayed: the same calls, and whether replies and publications agree.

JSON in a reply is compared by value, because clients parse it and the key order of the scripts is arbitrary. An empty
list and an empty object are different, as in the test suites of clients. Publications are compared as texts.
"""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from crossdock.model.commands.core import Command
from crossdock.protocols.redis.qless import unified
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import UNIFIED
from crossdock.protocols.redis.qless.notifications import notices, per_script
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.support.dispatcher import PlainDispatcher

T = TypeVar("T")

DATA = Path(__file__).parent / "data"


def scenarios(name: str) -> dict[str, list["Line"]]:
    """The scenarios of one recording. Each starts with an empty store."""
    found: dict[str, list[Line]] = {}
    for line in lines(DATA / f"{name}.jsonl.gz"):
        found.setdefault(line.scenario, []).append(line)
    return found


class Line(NamedTuple):
    scenario: str
    call: list[str]
    reply: dict[str, Any]
    published: list[list[str]]
    script: str = ""  #: of the per-script form
    keys: int = 0


def lines(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open() as file:
        for text in file:
            one = json.loads(text)
            yield Line(one["s"], one["call"], one["reply"], one["pub"], one.get("script", ""), one.get("nkeys", 0))


class QlessDispatcher(PlainDispatcher):
    """A dispatcher that publishes as the server does."""

    dialect = UNIFIED

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.published: list[list[str]] = []

    def do(self, command: Command[T]) -> T:
        before = len(self.events)
        outcome = super().do(command)
        self.published += [list(each) for each in notices(self.events[before:], self.state.qless.watched)]
        return outcome

    def tell(self, channel: str, text: str) -> None:
        self.published.append([channel, text])

    def call(self, *args: str) -> Any:
        """Call the unified script. An error is raised."""
        words = [arg.encode("utf-8", "surrogateescape") for arg in args]
        return unified.call_handler(self.dialect)(self, [], words, self.tell)

    def answer(self, call: list[str]) -> dict[str, Any]:
        """The reply in the recordings' form."""
        try:
            return _recorded(self.call(*call))
        except QlessError as error:
            return {"err": str(error)}

    def answer_script(self, line: "Line") -> dict[str, Any]:
        """Like `answer`, for the per-script form."""
        args = [arg.encode() for arg in line.call]
        try:
            reply = perscript.call_handler(line.script)(self, args[: line.keys], args[line.keys :], self.tell)
            return _recorded(reply)
        except QlessError as error:
            return {"err": str(error)}

    def published_in_scripts(self) -> list[list[str]]:
        found = [per_script((channel, text)) for channel, text in self.published]
        return [list(each) for each in found if each is not None]


def _recorded(reply: Any) -> dict[str, Any]:
    if reply is None:
        return {"nil": True}
    if isinstance(reply, str):
        return {"bulk": reply}
    if isinstance(reply, int):
        return {"int": reply}
    return {"array": [_recorded(each) for each in reply]}


#: The order of a set decides which of several dependents is named.
_DEPENDENT = re.compile(r"(?<= is a dependency of ).*(?= but is not mentioned)")


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if "err" in ours and "err" in theirs:
        return _DEPENDENT.sub("", ours["err"]) == _DEPENDENT.sub("", theirs["err"])
    if "array" in ours and "array" in theirs:
        return len(ours["array"]) == len(theirs["array"]) and all(map(same, ours["array"], theirs["array"]))
    if "bulk" in ours and "bulk" in theirs and ours != theirs:
        try:
            return _like(json.loads(ours["bulk"]), json.loads(theirs["bulk"]))
        except ValueError:
            return False
    return ours == theirs


def _like(ours: Any, theirs: Any, key: str = "") -> bool:
    if key in ("dependencies", "dependents") and isinstance(theirs, list):
        return bool(ours == sorted(theirs))
    if key == "data" and isinstance(ours, str) and isinstance(theirs, str):
        return bool(_loosely(json.loads(ours)) == _loosely(json.loads(theirs)))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_like(ours[each], theirs[each], each) for each in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_like, ours, theirs))
    return bool(ours == theirs) and (type(ours) is type(theirs) or (_number(ours) and _number(theirs)))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _loosely(value: Any) -> Any:
    """Data that the scripts encoded again: an empty list became an object."""
    if isinstance(value, dict):
        return {key: _loosely(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_loosely(each) for each in value] or {}
    return value

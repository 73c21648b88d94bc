"""A journal of event version 1 with every kind of event, one journal entry a line:
tests/unit/model/data/journal-v1.jsonl.

Lines are never changed or removed. For a new kind of event, extend the story and append the entries it adds:

    python -m tests.model.old_journal >> tests/unit/model/data/journal-v1.jsonl
"""

import base64
from collections.abc import Iterator
from functools import cache
from math import isinf
from pathlib import Path
from typing import Any, Final

import msgspec

from crossdock.model import events as e
from crossdock.model.events.codec import decode_entry
from tests.model.story import whole_story

FILE: Final = Path(__file__).parents[1] / "unit" / "model" / "data" / "journal-v1.jsonl"


class Line(msgspec.Struct):
    kinds: list[str]
    batch: bytes
    events: list[dict[str, Any]]  #: each field by its name


@cache
def lines() -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in FILE.read_bytes().splitlines()]


def raw_events() -> Iterator[tuple[e.AnyEvent, list[Any]]]:
    """Each event of the file, decoded, and as the plain list that is on disk."""
    for line in lines():
        bare = msgspec.msgpack.decode(line.batch)
        yield from zip(decode_entry(line.batch).events, bare[3], strict=True)


def tag(kind: type[e.Event]) -> str:
    return str(kind.__struct_config__.tag)


def named(value: object) -> Any:
    """A value as JSON, with the names of all fields at any depth."""
    if isinstance(value, msgspec.Struct):
        return {name: named(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [named(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and isinf(value):
        return str(value)  # JSON has no infinity
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def main() -> None:
    """Prints the entries of the story that the file does not have yet."""
    for batch in whole_story().batches[len(lines()) :]:
        events = decode_entry(batch).events
        line = Line([tag(type(event)) for event in events], batch, [named(event) for event in events])
        print(msgspec.json.encode(line).decode())


if __name__ == "__main__":
    main()

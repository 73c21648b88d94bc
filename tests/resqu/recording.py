"""Recorded conversations of the real client 1.0.4 and the real server 4.1.4 with a Redis, read from their texts.

A recording names scripts by the SHA-1 of their texts, which were not kept; they are sent by EVALSHA here.
"""

import gzip
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

DATA: Final = Path(__file__).parent / "data"

_SAID: Final = re.compile(r"^(?:\s*(conn?\d+))?\s*([<>]) (.*)$")
_SCRIPT: Final = re.compile(r"EVAL <\w+ sha1=([0-9a-f]{40}) len=\d+> (\d+) (.*)")

#: Number of arguments before the last one, which may contain blanks.
_LAST_IS_TEXT: Final = {"LPUSH": 2, "RPUSH": 2, "LPUSHX": 2, "HSET": 3, "LREM": 3}


class Null(NamedTuple):
    array: bool


class Line(NamedTuple):
    connection: str
    words: list[str]
    reply: Any
    text: str  #: as it was recorded


class Section(NamedTuple):
    title: str
    lines: list[Line]


def sections(name: str) -> list[Section]:
    found: list[Section] = []
    connection, asked = "c1", ""
    with gzip.open(DATA / f"{name}.txt.gz", "rt", encoding="utf-8", newline="\n") as file:
        for text in file.read().split("\n"):
            if text.startswith("## "):
                found.append(Section(text[3:], []))
            said = _SAID.match(text) if found else None
            if said is None:
                continue
            who, way, rest = said.groups()
            if way == ">":
                connection, asked = who or connection, rest
            else:
                found[-1].lines.append(Line(connection, _words(asked), _reply(rest), asked))
    return found


def _words(text: str) -> list[str]:
    script = _SCRIPT.fullmatch(text)
    if script is not None:
        sha, count, rest = script.groups()
        before, brace, after = rest.partition("{")
        if not brace:
            return ["EVALSHA", sha, count, *rest.split(" ")]
        json, end, more = (brace + after).rpartition("}")
        return ["EVALSHA", sha, count, *before.split(), json + end, *more.split()]
    verb, _, rest = text.partition(" ")
    if verb == "SET":
        key, value = rest.split(" ", 1)
        return [verb, key, value] if value.startswith("{") else [verb, key, *value.split(" ")]
    return text.split(" ", _LAST_IS_TEXT[verb]) if verb in _LAST_IS_TEXT else text.split(" ")


def _reply(text: str) -> Any:
    if text == "(null bulk)":
        return Null(array=False)
    if text == "(null array)":
        return Null(array=True)
    if text.startswith(":"):
        return int(text[1:])
    if text.startswith("["):
        return [each for each in text[1:-1].split(", ") if each]
    return text[1:-1] if text.startswith('"') else text

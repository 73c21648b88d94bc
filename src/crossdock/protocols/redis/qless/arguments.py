"""What the arguments of a call mean: names, numbers, JSON, and what the scripts say of others."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

from crossdock.model.job import Form, form_of
from crossdock.protocols.redis.keys.values import KIND_BYTES
from crossdock.protocols.redis.qless import cjson, cjson_reader

#: MODEL section 12.
NAME_BYTES: Final = 255
SHORT: Final = NAME_BYTES // 4  #: characters that are never more bytes than that

#: What the scripts' language takes for blank.
_BLANKS: Final = " \t\n\v\f\r"

#: Jobs that one job may need: whenever one of them succeeds, it is told.
NEEDS_AT_MOST: Final = 10_000

#: Tags of a job, and of a call that changes them: each is an index of its own.
TAGS_AT_MOST: Final = 1_000

#: Characters of JSON that is no job's data: the names of so many jobs have room in it.
_LISTS_AT_MOST: Final = 3 * 1024 * 1024

_JSON: Final = Form.JSON

_INDEX_AT_MOST: Final = 2**52

#: An offset and a count.
Span: TypeAlias = tuple[int, int]


class Raised(Exception):
    """The script's own error. Its text is part of the protocol."""


class Refused(Raised):
    """An error of this server where a script goes on, or fails after it changed half of the job. The call changes
    nothing."""


class Denied(Raised):
    """There is no such job, or not in that state, or somebody else has it. The oldest dialect says nothing instead."""


def name(value: str) -> str:
    """Of a job, a queue or a worker."""
    if "\0" in value or (len(value) > SHORT and len(value.encode()) > NAME_BYTES):
        raise Refused(f"a name has more than {NAME_BYTES} bytes, or NUL in it")
    return value


def kind(value: str) -> str:
    """A job's class. PHP writes NUL and a path into the name of an anonymous one."""
    if len(value) > KIND_BYTES // 4 and len(value.encode()) > KIND_BYTES:
        raise Raised(f"a klass has more than {KIND_BYTES} bytes")
    return value


def number(value: str | None, message: str, default: float | None = None) -> float:
    """An argument that must be a number; `message` is followed by what it is instead."""
    if value is None and default is not None:
        return default
    found = cjson_reader.number(value)
    if found is None or not found == found:
        raise Raised(message + ("nil" if value is None else value))
    return found


def index(value: str | None, message: str, default: float | None) -> int:
    """An offset, or a count of what is shown: a number, cut to what may be asked for."""
    return _cut(number(value, message, default))


def span(
    offset: str | None, count: str | None, message: str, names: tuple[str, str], begin: float | None = 0.0
) -> Span:
    """Both, which must be whole; `message` tells of either. `begin` is None where neither may be missing."""
    first = number(offset, message % names[0], begin)
    many = number(count, message % names[1], None if begin is None else 25.0)
    refuse_part(first)
    refuse_part(many)
    return _cut(first), _cut(many)


def _cut(value: float) -> int:
    return int(max(-_INDEX_AT_MOST, min(value, _INDEX_AT_MOST)))


def refuse_part(count: float) -> None:
    """Of a job: the script hands it to Redis, and this is what that says."""
    if not count.is_integer() and isfinite(count):
        raise Raised("value is not an integer or out of range")


def finite(value: str | None, message: str, default: float | None = None) -> float:
    """A number that must have an end: a length of time, or how many there may be."""
    found = number(value, message, default)
    if not isfinite(found):
        raise Refused(f"{message}{value}")
    return found


def decoded(text: str | None) -> Any:
    if text is not None and len(text) > _LISTS_AT_MOST:
        raise Refused(f"JSON of more than {_LISTS_AT_MOST >> 20} MiB that is not a job's data")
    return _read(text)


def _read(text: str | None) -> Any:
    try:
        return cjson.read(text)
    except cjson.Malformed as error:
        raise Raised(str(error)) from error


def asserted(text: str | None, refusal: str, read: Callable[[str | None], Any] = decoded) -> Any:
    """Any JSON but `false`, which the scripts take for none."""
    found = read(text)
    if found is False:
        raise Raised(f"{refusal}{text}")
    return found


def array(text: str | None, refusal: str) -> Any:
    """JSON that is to be a list. The scripts keep an object, too, and its names are never read: it is refused. An empty
    one is an empty list to them."""
    found = asserted(text, refusal)
    if isinstance(found, dict) and found:
        raise Refused(f"{refusal}{text}")
    return found


def data(text: str | None, refusal: str) -> tuple[bytes, Form]:
    """A job's data: it is kept as it was written."""
    payload = (text or "").encode("utf-8", "surrogateescape")
    if cjson.is_plain(payload):
        return payload, _JSON
    asserted(text, refusal, _read)
    return payload, form_of(payload)


def new_data(text: str | None) -> bytes | None:
    """What a job's data is to be from now on; None, as it is: `false` says so, too."""
    if text is None:
        return None
    payload = text.encode("utf-8", "surrogateescape")
    return payload if cjson.is_plain(payload) or _read(text) is not False else None


def options(pairs: list[str], word: str = "") -> dict[str, str]:
    if len(pairs) % 2:
        raise Raised(f"{word}Odd number of additional args: table: 0x0")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def tags(value: Any) -> tuple[str | int | float | bool, ...]:
    """A list of scalars; of an object the script sees nothing."""
    found: list[str | int | float | bool] = []
    given = listed(value)
    refuse_tags(len(given))
    for tag in given:
        if isinstance(tag, str):
            found.append(name(tag))
        elif isinstance(tag, bool):
            found.append(tag)
        elif isinstance(tag, float):
            found.append(cjson_reader.whole(tag))
        else:
            kind = "userdata" if tag is cjson.NULL else "table"
            raise Raised(f"attempt to concatenate local 'tag' (a {kind} value)")
    return tuple(found)


def is_blank(tag: str) -> bool:
    """The PHP fork drops such tags."""
    return not tag.strip(_BLANKS)


def filled(value: Any) -> list[str]:
    """The tags of a list that the PHP fork keeps: it takes texts only, and no blank ones."""
    found: list[str] = []
    for tag in listed(value):
        if isinstance(tag, (list, dict)):
            raise Raised("attempt to call method 'gsub' (a nil value)")
        if not isinstance(tag, str):
            kinds = {float: "number", bool: "boolean"}
            raise Raised(f"attempt to index local 's' (a {kinds.get(type(tag), 'userdata')} value)")
        if not is_blank(tag):
            found.append(tag)
    return found


def refuse_tags(count: int) -> None:
    if count > TAGS_AT_MOST:
        raise Refused(f"more than {TAGS_AT_MOST} tags, the limit")


def refuse_needs(count: int) -> None:
    if count > NEEDS_AT_MOST:
        raise Refused(f"a job needs more than {NEEDS_AT_MOST} others, the limit")


def length(value: Any) -> int:
    """Of what was given for the names of other jobs."""
    if value is cjson.NULL or isinstance(value, (bool, float)):
        kind = "userdata" if value is cjson.NULL else "boolean" if isinstance(value, bool) else "number"
        raise Raised(f"attempt to get length of local 'depends' (a {kind} value)")
    return 0 if isinstance(value, dict) else len(value)


def jids(value: Any) -> list[str]:
    """Names of other jobs; numbers are taken as they print."""
    named = listed(value)
    refuse_needs(len(named))
    wrong = next((each for each in named if type(each) not in (str, float)), None)
    if wrong is not None:
        raise Refused(f"attempt to concatenate local 'j' (a {kind_of(wrong)} value)")
    return [each if isinstance(each, str) else cjson_reader.show(each) for each in named]


def kind_of(value: Any) -> str:
    """What the scripts' language calls a value of JSON."""
    if isinstance(value, (list, dict)):
        return "table"
    return {str: "string", float: "number", bool: "boolean"}.get(type(value), "userdata")


def listed(value: Any, by: str = "ipairs") -> list[Any]:
    """`by` is the function that does not find a table."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return []
    raise Raised(f"bad argument #1 to '{by}' (table expected, got {kind_of(value)})")

"""Parses the arguments of qless calls: names, numbers, JSON. Errors have the texts of the scripts."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

from crossdock.model.job import Form, form_of
from crossdock.protocols.redis.keys.values import KIND_BYTES
from crossdock.protocols.redis.qless import cjson, cjson_reader

#: Length of a name (model.md section 12).
NAME_BYTES: Final = 255
SHORT: Final = NAME_BYTES // 4  #: a name with at most this many characters is within the limit

#: What Lua takes for white space.
_BLANKS: Final = " \t\n\v\f\r"

#: Dependencies of one job. Each completion of a dependency updates the job.
DEPENDENCIES_AT_MOST: Final = 10_000

#: Tags of a job, and of a call that changes them. Each tag has an index.
TAGS_AT_MOST: Final = 1_000

#: Characters of a JSON argument other than data. A list of DEPENDENCIES_AT_MOST jids fits.
_LISTS_AT_MOST: Final = 3 * 1024 * 1024

_JSON: Final = Form.JSON

_INDEX_AT_MOST: Final = 2**52

#: Offset and count.
Span: TypeAlias = tuple[int, int]


class QlessError(Exception):
    """The error of a call. If a script raises it, its text is part of the protocol."""


class Refused(QlessError):
    """An error of this server where a script continues, or fails after partial changes. The call changes nothing."""


class Denied(QlessError):
    """The job does not exist, has another state, or is leased to another worker. The per-script form returns nil."""


def name(value: str) -> str:
    """The name of a job, a queue or a worker."""
    if "\0" in value or (len(value) > SHORT and len(value.encode()) > NAME_BYTES):
        raise Refused(f"a name may have at most {NAME_BYTES} bytes and no NUL")
    return value


def kind(value: str) -> str:
    """A job's class. PHP names an anonymous class by NUL and a path."""
    if len(value) > KIND_BYTES // 4 and len(value.encode()) > KIND_BYTES:
        raise QlessError(f"a klass may have at most {KIND_BYTES} bytes")
    return value


def number(value: str | None, message: str, default: float | None = None) -> float:
    """A number. The error is `message` followed by the argument."""
    if value is None and default is not None:
        return default
    found = cjson_reader.number(value)
    if found is None or not found == found:
        raise QlessError(message + ("nil" if value is None else value))
    return found


def index(value: str | None, message: str, default: float | None) -> int:
    """An offset or a count, limited to 52 bits."""
    return _limited(number(value, message, default))


def span(
    offset: str | None, count: str | None, message: str, names: tuple[str, str], begin: float | None = 0.0
) -> Span:
    """Offset and count, which must be integers. The error is `message` with the name of the argument. With `begin` None
    both are required."""
    first = number(offset, message % names[0], begin)
    many = number(count, message % names[1], None if begin is None else 25.0)
    refuse_fraction(first)
    refuse_fraction(many)
    return _limited(first), _limited(many)


def _limited(value: float) -> int:
    return int(max(-_INDEX_AT_MOST, min(value, _INDEX_AT_MOST)))


def refuse_fraction(count: float) -> None:
    """The script passes the count to Redis, which raises this error."""
    if not count.is_integer() and isfinite(count):
        raise QlessError("value is not an integer or out of range")


def finite(value: str | None, message: str, default: float | None = None) -> float:
    """A finite number: a duration or a maximum."""
    found = number(value, message, default)
    if not isfinite(found):
        raise Refused(f"{message}{value}")
    return found


def decoded(text: str | None) -> Any:
    if text is not None and len(text) > _LISTS_AT_MOST:
        raise Refused(f"a JSON argument other than data may have at most {_LISTS_AT_MOST >> 20} MiB")
    return _read(text)


def _read(text: str | None) -> Any:
    try:
        return cjson.read(text)
    except cjson.Malformed as error:
        raise QlessError(str(error)) from error


def decoded_not_false(text: str | None, refusal: str, read: Callable[[str | None], Any] = decoded) -> Any:
    """Any JSON value except `false`, which the scripts take for a missing one."""
    found = read(text)
    if found is False:
        raise QlessError(f"{refusal}{text}")
    return found


def array(text: str | None, refusal: str) -> Any:
    """A JSON list. The scripts also store an object, whose members they never read; here it is refused. An empty object
    is an empty list."""
    found = decoded_not_false(text, refusal)
    if isinstance(found, dict) and found:
        raise Refused(f"{refusal}{text}")
    return found


def data(text: str | None, refusal: str) -> tuple[bytes, Form]:
    """A job's data, which is stored as the client wrote it."""
    payload = (text or "").encode("utf-8", "surrogateescape")
    if cjson.is_plain(payload):
        return payload, _JSON
    decoded_not_false(text, refusal, _read)
    return payload, form_of(payload)


def new_data(text: str | None) -> bytes | None:
    """New data for a job; None if it does not change. The JSON value `false` does not change it either."""
    if text is None:
        return None
    payload = text.encode("utf-8", "surrogateescape")
    return payload if cjson.is_plain(payload) or _read(text) is not False else None


def options(pairs: list[str], word: str = "") -> dict[str, str]:
    if len(pairs) % 2:
        raise QlessError(f"{word}Odd number of additional args: table: 0x0")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def tags(value: Any) -> tuple[str | int | float | bool, ...]:
    """The tags of a JSON list. The script ignores the members of an object."""
    found: list[str | int | float | bool] = []
    items = listed(value)
    refuse_tags(len(items))
    for tag in items:
        if isinstance(tag, str):
            found.append(name(tag))
        elif isinstance(tag, bool):
            found.append(tag)
        elif isinstance(tag, float):
            found.append(cjson_reader.whole(tag))
        else:
            kind = "userdata" if tag is cjson.NULL else "table"
            raise QlessError(f"attempt to concatenate local 'tag' (a {kind} value)")
    return tuple(found)


def is_blank(tag: str) -> bool:
    """Whether a tag is empty or white space. The PHP fork drops such tags."""
    return not tag.strip(_BLANKS)


def nonblank_tags(value: Any) -> list[str]:
    """The tags that the PHP fork keeps. They must be strings; blank ones are dropped."""
    found: list[str] = []
    for tag in listed(value):
        if isinstance(tag, (list, dict)):
            raise QlessError("attempt to call method 'gsub' (a nil value)")
        if not isinstance(tag, str):
            kinds = {float: "number", bool: "boolean"}
            raise QlessError(f"attempt to index local 's' (a {kinds.get(type(tag), 'userdata')} value)")
        if not is_blank(tag):
            found.append(tag)
    return found


def refuse_tags(count: int) -> None:
    if count > TAGS_AT_MOST:
        raise Refused(f"a job may have at most {TAGS_AT_MOST} tags")


def refuse_many_dependencies(count: int) -> None:
    if count > DEPENDENCIES_AT_MOST:
        raise Refused(f"a job may have at most {DEPENDENCIES_AT_MOST} dependencies")


def length(value: Any) -> int:
    """The number of dependencies in a JSON value."""
    if value is cjson.NULL or isinstance(value, (bool, float)):
        kind = "userdata" if value is cjson.NULL else "boolean" if isinstance(value, bool) else "number"
        raise QlessError(f"attempt to get length of local 'depends' (a {kind} value)")
    return 0 if isinstance(value, dict) else len(value)


def jids(value: Any) -> list[str]:
    """The jids in a JSON list. Numbers become text."""
    items = listed(value)
    refuse_many_dependencies(len(items))
    wrong = next((each for each in items if type(each) not in (str, float)), None)
    if wrong is not None:
        raise Refused(f"attempt to concatenate local 'j' (a {lua_type(wrong)} value)")
    return [each if isinstance(each, str) else cjson_reader.show(each) for each in items]


def lua_type(value: Any) -> str:
    """The Lua type of a JSON value."""
    if value is None:
        return "nil"
    if isinstance(value, (list, dict)):
        return "table"
    return {str: "string", float: "number", bool: "boolean"}.get(type(value), "userdata")


def listed(value: Any, by: str = "ipairs") -> list[Any]:
    """The items of a JSON list; an object has none. `by` is the Lua function that the error names."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return []
    raise QlessError(f"bad argument #1 to '{by}' (table expected, got {lua_type(value)})")

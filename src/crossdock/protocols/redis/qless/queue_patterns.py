"""reqless' queue patterns: plain keys with defaults, and the key names of an older library (qless.md section 10)."""

from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.keyspace import live_entry
from crossdock.model.commands.keyspace import ChangeList, ChangeMembers, DropKeys, Kind
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import QlessError, decoded, lua_type
from crossdock.protocols.redis.qless.call import Call, Reply

IDENTIFIERS: Final = b"ql:qp:identifiers"
PRIORITIES: Final = b"ql:qp:priorities"
_OLD_IDENTIFIERS: Final = b"qmore:dynamic"
_OLD_PRIORITIES: Final = b"qmore:priority"

_EVERY: Final = '["*"]'
_DEFAULT: Final = '{"fairly": false, "pattern": ["default"]}'

#: Patterns that one call may set, and so the most that one reply holds.
AT_MOST: Final = 10_000


def find(call: Call, kind: Kind, *keys: bytes) -> Entry | None:
    """The value of the first of these plain keys that exists."""
    for key in keys:
        found = live_entry(call.state, key, call.dispatcher.now)
        if found is not None:
            if found.kind is not kind:
                raise QlessError("WRONGTYPE Operation against a key holding the wrong kind of value")
            return found
    return None


def identifiers(call: Call) -> Reply:
    shown = {"default": _EVERY}
    found = find(call, Kind.HASH, IDENTIFIERS, _OLD_IDENTIFIERS)
    if found is not None:
        shown |= {_text(name): _text(value) for name, value in found.data.items()}
    return cjson.write(shown)


def set_identifiers(call: Call) -> Reply:
    words = call.rest(0)
    if len(words) % 2:
        raise QlessError("Odd number of identifier patterns: table: 0x0")
    _refuse_if_long(len(words) // 2)
    pairs = zip(words[::2], words[1::2], strict=True)  # an empty list does not replace an earlier value in the call
    patterns = {name: value for name, value in pairs if _listed(decoded(value), "values")}
    patterns.setdefault("default", _EVERY)
    fields = [(_bytes(name), _bytes(each)) for name, each in patterns.items()]
    call.refuse_if_key_space_full((IDENTIFIERS, *(word for field in fields for word in field)))
    call.dispatcher.do(DropKeys([IDENTIFIERS, _OLD_IDENTIFIERS]))
    call.dispatcher.do(ChangeMembers(IDENTIFIERS, Kind.HASH, fields))
    return None


def priorities(call: Call) -> Reply:
    found = find(call, Kind.LIST, PRIORITIES, _OLD_PRIORITIES)
    return cjson.write([_text(each) for each in found.data] if found is not None else [_DEFAULT])


def set_priorities(call: Call) -> Reply:
    words = call.rest(0)
    _refuse_if_long(len(words))
    patterns = [_pattern(word) for word in words]
    if words and ["default"] not in patterns:
        words.append(_DEFAULT)
    elements = [_bytes(word) for word in words]
    if elements:
        call.refuse_if_key_space_full((PRIORITIES, *elements))
    call.dispatcher.do(DropKeys([PRIORITIES, _OLD_PRIORITIES]))
    if elements:
        call.dispatcher.do(ChangeList(PRIORITIES, 0, 0, elements))
    return None


def _pattern(word: str) -> list[object]:
    found = decoded(word)
    if not isinstance(found, (dict, list, str)):
        raise QlessError(f"attempt to index a {lua_type(found)} value")
    return _listed(found.get("pattern") if isinstance(found, dict) else None, "pattern")


def _listed(value: object, local: str) -> list[object]:
    if isinstance(value, list):
        return value
    if isinstance(value, (dict, str)):
        return list(value) if isinstance(value, str) else []
    raise QlessError(f"attempt to get length of local '{local}' (a {lua_type(value)} value)")


def _refuse_if_long(count: int) -> None:
    if count > AT_MOST:
        raise QlessError(f"a call may set at most {AT_MOST} patterns")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")

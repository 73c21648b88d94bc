"""A script library and a keyspace view, such as the protocols on Redis provide, for tests of the Redis protocol."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.model.commands.keyspace import Kind, SetKey
from crossdock.protocols.redis.commands.command import Act
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Block, Error, Result, Value
from crossdock.protocols.redis.scripts import Library, ScriptCall, ScriptError, sha1
from crossdock.protocols.redis.views import NotHandled, Page, page_by_hash

ECHO: Final = b"return\necho()"
ECHO_SHA: Final = sha1(ECHO)


def _echo(call: ScriptCall) -> Value:
    """Returns its arguments. `fail` raises, `both` sets two keys, `tell` publishes."""
    match call.args:
        case [b"fail", text]:
            raise ScriptError(text.decode())
        case [b"refuse", text]:
            raise Error(text)
        case [b"both", value]:
            for key in call.keys:
                call.context.dispatcher.do(SetKey(key, value))
            return len(call.keys)
        case [b"tell", channel, text]:
            return call.context.dispatcher.publish(channel, text, to_patterns=False)
    return [call.dialect.encode(), call.keys, call.args]


ECHOES: Final = Library(
    dialects=("echo", "echo like"),
    hashes={ECHO_SHA: "echo"},
    handle=_echo,
    recognise=lambda text: "echo like" if b"echo" in text else None,
    functions={"echo": "echo"},
)


class Mirror:
    """A view of the keys under `mirror:`.

    `mirror:score` is a sorted set. `mirror:list` is a list: pushes go to `mirror:queue` and pops take from there. Keys
    that begin with `mirror:plain` are plain keys.
    """

    prefix = b"mirror:"

    def owns(self, key: bytes) -> bool:
        return not key.startswith(b"mirror:plain")

    def act(self, name: bytes, key: bytes) -> Act:
        return partial(self._call, name)

    def _call(self, name: bytes, context: Context, args: list[bytes]) -> Result:
        if name == b"zcard":
            return 1_000_000
        if name == b"rpush":
            return len(args) - 1
        if name in (b"del", b"unlink"):
            return len(args)
        if name == b"brpop":
            now = context.dispatcher.now.steady
            return Block(("mirrored",), now + 1.0, lambda: self._call(name, context, args), b"late", b"here")
        if name == b"set":
            raise Error("ERR the mirror refuses")
        raise NotHandled

    def read(self, context: Context, key: bytes) -> Entry | None:
        return Entry(Kind.SORTED, Sorted({b"a": 1.0, b"b": 2.0})) if key == b"mirror:score" else None

    def keys(self, context: Context) -> Iterator[bytes]:
        yield b"mirror:score"

    def page(self, context: Context, sort_key: int, count: int) -> Page:
        return page_by_hash(self.keys(context), sort_key, count)

    def kind(self, key: bytes) -> Kind:
        return Kind.SORTED


MIRROR: Final = Mirror()

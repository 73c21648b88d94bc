"""Views: keys under a prefix that show engine state instead of stored values (model.md sections 7 and 10).

qless and Resqu each have a view. A command on a key of a view goes to the view first. If the view does not handle it, a
read command reads the value that the view builds for the key, and a write command is refused.
"""

from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Final, Protocol

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.keyspace import keyspace_bytes, live_entry
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.commands.command import DENY_OOM, WRITE, Act, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Result


class NotHandled(Exception):
    """Raised by the handler of a view for a command that works on the value of `View.read`."""


#: Commands that may name keys of several views and plain keys at once.
_DELETES: Final = frozenset({b"del", b"unlink"})

#: Work in slices. It returns the next cursor and the keys of a page.
Page = Generator[None, None, tuple[int, list[bytes]]]

#: Keys visited before other connections are served again: about 2 ms.
SLICE: Final = 1_000

#: Number of (command, key) pairs whose handlers are cached, and the longest key that is cached.
_CACHED: Final = 4_096
_SHORT: Final = 256

#: Smallest page of `page_by_hash`, because each page visits all keys.
_HASHED: Final = 1_000


def page_by_hash(keys: Iterator[bytes], cursor: int, count: int) -> Page:
    """A page of keys in the order of their hashes, which does not change while keys come and go. A page holds all keys
    of a hash. Hashes have 48 bits, so a thousand keys with the same hash do not occur."""
    most = max(count, _HASHED)
    best: list[tuple[int, bytes]] = []
    while some := list(islice(keys, SLICE)):
        behind = ((_hash(key), key) for key in some)
        best = sorted(best + [each for each in behind if each[0] >= cursor])[: most + 1]
        yield
    if len(best) <= most:
        return 0, [key for _, key in best]
    end = best[most][0]
    return end, [key for at, key in best if at < end]


def _hash(key: bytes) -> int:
    return int.from_bytes(blake2b(key, digest_size=6).digest()) + 1


class View(Protocol):
    prefix: bytes

    def owns(self, key: bytes) -> bool:
        """Whether this key, which has the prefix, belongs to the view. Other keys with the prefix are plain keys. The
        answer for a key never changes, because it is cached."""

    def act(self, name: bytes, key: bytes) -> Act:
        """The handler of a command (in lower case) whose first key is `key` and which has at least one key of the view.
        The result is cached. The handler raises NotHandled for a command that `read` serves, Error to refuse one."""

    def read(self, context: Context, key: bytes) -> Entry | None:
        """The value of a key, for commands that only read."""

    def keys(self, context: Context) -> Iterator[bytes]:
        """All keys of the view. They are consumed in slices, and the engine's state may change between two slices."""

    def page(self, context: Context, cursor: int, count: int) -> Page:
        """About `count` keys from the cursor on (0: from the start), and the next cursor (0: the end). A key that
        exists during the whole iteration is in one of the pages. `page_by_hash` serves for keys without an order."""

    def kind(self, key: bytes) -> Kind:
        """The type of a key, derived from its name."""


class Views:
    """All views of the protocol, the longest prefix first."""

    def __init__(self, views: tuple[View, ...] = ()) -> None:
        self.all = tuple(sorted(views, key=lambda view: len(view.prefix), reverse=True))
        self._prefixes = tuple(view.prefix for view in self.all)
        self._cached = lru_cache(maxsize=_CACHED)(self._find)

    def of(self, key: bytes) -> View | None:
        if not key.startswith(self._prefixes):
            return None
        return next((view for view in self.all if key.startswith(view.prefix) and view.owns(key)), None)

    def act(self, name: bytes, key: bytes) -> Act | None:
        """The handler of a command whose only key this is; None for a plain key."""
        if not key.startswith(self._prefixes):
            return None
        return self._cached(name, key) if len(key) <= _SHORT else self._find(name, key)

    def _find(self, name: bytes, key: bytes) -> Act | None:
        view = self.of(key)
        return None if view is None else view.act(name, key)


def find(context: Context, key: bytes) -> Entry | None:
    """The value of a key, from a view or from the key space."""
    view = context.protocol.views.of(key)
    if view is not None:
        return view.read(context, key)
    return live_entry(context.dispatcher.state, key, context.dispatcher.now)


def run(context: Context, command: Command, args: list[bytes]) -> Result:
    """Run one command: on a view, or else on the key space if that is not full. An Error is returned, not raised."""
    try:
        if command.first:
            views = context.protocol.views
            if command.last == 1:  # most commands have one key, the first argument
                act = views.act(command.name, args[0])
            elif command.name in _DELETES:
                return _delete(context, command, args)
            else:
                view = next(filter(None, map(views.of, command.keys(args))), None)
                act = None if view is None else view.act(command.name, args[0])
            if act is not None:
                try:
                    return act(context, args)
                except NotHandled:
                    return _on_value(context, command, args)
            if command.flags & DENY_OOM:
                refuse_if_full(context, args)
        return command.act(context, args)
    except Error as error:
        return error.reply()


def _on_value(context: Context, command: Command, args: list[bytes]) -> Result:
    """Run a command that the view does not handle on the value that it shows. Writes are refused."""
    if command.flags & WRITE:
        raise _refused(context, command, args)
    return command.act(context, args)


def _delete(context: Context, command: Command, args: list[bytes]) -> Result:
    of = context.protocol.views.of
    done = 0
    for view in {of(key): None for key in args}:
        if view is None:
            continue
        keys = [key for key in args if of(key) is view]
        try:
            result = view.act(command.name, keys[0])(context, keys)
        except NotHandled:
            raise _refused(context, command, keys) from None
        if not isinstance(result, int):
            return result
        done += result
    plain = [key for key in args if of(key) is None]
    rest = command.act(context, plain) if plain else 0
    return done + rest if isinstance(rest, int) else rest


def _refused(context: Context, command: Command, args: list[bytes]) -> Error:
    key = next(key for key in command.keys(args) if context.protocol.views.of(key) is not None)
    return Error(b"ERR %b is not supported on '%b', which shows the state of jobs" % (command.name.upper(), key[:128]))


def key_space_full(state: EngineState, limit: int, words: Iterable[bytes]) -> str | None:
    """The error if plain keys cannot grow by these words, else None."""
    if keyspace_bytes(state) + sum(map(len, words)) <= limit:
        return None
    return f"OOM the key space has reached its limit of {limit >> 20} MiB; delete keys or raise redis.keys_mib"


def refuse_if_key_space_full(context: Context, words: Iterable[bytes]) -> None:
    """Raise if plain keys cannot grow by these words. The job limit does not count: no job is added."""
    full = key_space_full(context.dispatcher.state, context.protocol.keys_bytes, words)
    if full is not None:
        raise Error(full)


def refuse_if_full(context: Context, args: list[bytes]) -> None:
    """Raise if plain keys cannot grow by these words, or if the server accepts no writes that take space."""
    refuse_if_key_space_full(context, args)
    no_room = context.dispatcher.no_room(0)
    if no_room is not None:
        raise Error(f"OOM {no_room}")

"""Views: keys under a prefix that are not plain ones but show what the engine holds (MODEL 7 and 10).

A later door brings a view for its prefix. Each command is offered to it first; what it passes on is read from the value
it makes up for that key, and what would write there is refused.
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
from crossdock.protocols.redis.commands.command import GROWS, WRITE, Act, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Result


class Pass(Exception):
    """Raised by what `View.act` gives for a command that it leaves to what `View.read` gives."""


#: Commands that may name keys of several views and plain ones at once.
_DELETES: Final = frozenset({b"del", b"unlink"})

#: Work in slices: the next place, and the keys of a page
Page = Generator[None, None, tuple[int, list[bytes]]]

#: Keys looked at between the turns of others: about 2 ms.
SLICE: Final = 1_000

#: Commands and keys of which it is remembered what is done, if the key has no more bytes than this.
_REMEMBERED: Final = 4_096
_SHORT: Final = 256

#: Keys of one page by hash, at least: each page is found by a look at all of them.
_HASHED: Final = 1_000


def hashed(keys: Iterator[bytes], place: int, count: int) -> Page:
    """A page of keys by their hashes, which last; of 48 bits, and nobody finds a thousand keys that share one."""
    most = max(count, _HASHED)
    best: list[tuple[int, bytes]] = []
    while some := list(islice(keys, SLICE)):
        behind = ((_hash(key), key) for key in some)
        best = sorted(best + [each for each in behind if each[0] >= place])[: most + 1]
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
        """Is this key, which has the prefix, one of the view? The others under it are plain keys. What is said of a key
        once is said for ever."""

    def act(self, name: bytes, key: bytes) -> Act:
        """What carries out a command (lower case, as in `zcard`) whose first key this is, and of which at least one is
        the view's; for ever the same. It raises Pass for what it does not answer itself, Error for what it refuses."""

    def read(self, context: Context, key: bytes) -> Entry | None:
        """The value shown under that key, for commands that only read."""

    def keys(self, context: Context) -> Iterator[bytes]:
        """All keys shown. Taken in slices: the engine's state may change between two of them."""

    def page(self, context: Context, place: int, count: int) -> Page:
        """About so many keys from that place on, 0 at first, and the place of the next page; 0: that was the last. A
        key that is shown all the while is in one of them. `hashed` does for keys that are in no order."""

    def kind(self, key: bytes) -> Kind:
        """What a key shown is, without looking at it."""


class Views:
    """All views of a door, the longest prefix first."""

    def __init__(self, views: tuple[View, ...] = ()) -> None:
        self.all = tuple(sorted(views, key=lambda view: len(view.prefix), reverse=True))
        self._prefixes = tuple(view.prefix for view in self.all)
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._find)

    def of(self, key: bytes) -> View | None:
        if not key.startswith(self._prefixes):
            return None
        return next((view for view in self.all if key.startswith(view.prefix) and view.owns(key)), None)

    def act(self, name: bytes, key: bytes) -> Act | None:
        """What carries out this command; None: the key is a plain one."""
        if not key.startswith(self._prefixes):
            return None
        return self._remembered(name, key) if len(key) <= _SHORT else self._find(name, key)

    def _find(self, name: bytes, key: bytes) -> Act | None:
        view = self.of(key)
        return None if view is None else view.act(name, key)


def find(context: Context, key: bytes) -> Entry | None:
    """What is under that key, shown or plain."""
    view = context.protocol.views.of(key)
    if view is not None:
        return view.read(context, key)
    return live_entry(context.dispatcher.state, key, context.dispatcher.now)


def run(context: Context, command: Command, args: list[bytes]) -> Result:
    """One command: views first, then the plain key space, if it has room. An Error is a result like others."""
    try:
        if command.first:
            views = context.protocol.views
            if command.last == 1:  # most have one key, their first word
                act = views.act(command.name, args[0])
            elif command.name in _DELETES:
                return _delete(context, command, args)
            else:
                view = next(filter(None, map(views.of, command.keys(args))), None)
                act = None if view is None else view.act(command.name, args[0])
            if act is not None:
                try:
                    return act(context, args)
                except Pass:
                    return _passed(context, command, args)
            if command.flags & GROWS:
                refuse_if_full(context, args)
        return command.act(context, args)
    except Error as error:
        return error.reply()


def _passed(context: Context, command: Command, args: list[bytes]) -> Result:
    """What the view does not answer itself is read from what it shows, and not written."""
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
        except Pass:
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


def no_place(state: EngineState, limit: int, words: Iterable[bytes]) -> str | None:
    """Why plain keys cannot grow by so much, None if they can."""
    if keyspace_bytes(state) + sum(map(len, words)) <= limit:
        return None
    return f"OOM the key space holds {limit >> 20} MiB, its limit; delete keys, or raise redis.keys_mib"


def refuse_if_no_place(context: Context, words: Iterable[bytes]) -> None:
    """Before plain keys grow by what is told of jobs that are there already."""
    full = no_place(context.dispatcher.state, context.protocol.keys_bytes, words)
    if full is not None:
        raise Error(full)


def refuse_if_full(context: Context, args: list[bytes]) -> None:
    """Before plain keys grow by so much."""
    refuse_if_no_place(context, args)
    no_room = context.dispatcher.no_room(0)
    if no_room is not None:
        raise Error(f"OOM {no_room}")

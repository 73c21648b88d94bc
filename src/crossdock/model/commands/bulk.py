"""Loads: many jobs that a program brings in many calls, some of them more than once, each taken in exactly once.

Whoever brings them names the load, its run. The server remembers a digest of every jid that the run has brought, alive
or not, until the load is closed; then it remembers the totals alone.

A load may be idempotent by jid alone, over all runs (`once`): what is alive under a jid, however it came, is not taken
in again, nor what such a load brought in the last days (MODEL section 7, Once).
"""

from enum import IntEnum
from hashlib import blake2b
from typing import Final

import msgspec

from crossdock.model.commands.core import Command
from crossdock.model.job import Spec

#: Open at a time. A load that nobody closes is closed when it has been idle for `IDLE_S`.
OPEN_AT_MOST: Final = 64
IDLE_S: Final = 7 * 86_400.0

#: Jids of all open loads together; each takes about a hundred bytes.
JIDS_AT_MOST: Final = 10_000_000

#: Closed ones whose totals are remembered, the newest.
CLOSED_AT_MOST: Final = 10_000

#: What loads brought by jid alone is remembered so long, the newest so many of it.
ONCE_S: Final = 7 * 86_400.0
ONCE_AT_MOST: Final = 1_000_000

#: A jid of so many hexadecimal digits is its own digest.
_HEX: Final = 32


class BulkLoad(msgspec.Struct, array_like=True):
    run: str
    opened: float  #: wall
    new: int = 0  #: jobs taken in
    known: int = 0  #: brought again, and passed over
    closed: float | None = None  #: wall
    end: float = 0.0  #: steady; closed then if nothing more comes
    jids: set[bytes] = msgspec.field(default_factory=set)  #: digests; empty when it is closed
    lapsed: bool = False  #: nobody closed it: nothing came for long


class LoadRefusal(IntEnum):
    """Why nothing was taken in."""

    CLOSED = 1
    TOO_MANY_OPEN = 2
    TOO_MANY_JIDS = 3
    LAPSED = 4


class Loaded(msgspec.Struct, frozen=True, gc=False):
    """What a call did, and the load as it is then."""

    new: int
    known: int
    total_new: int
    total_known: int
    refused: LoadRefusal | None = None


class LoadJobs(Command[Loaded], frozen=True, gc=False):
    """Take in those jobs whose jids this run has not brought yet. They have no links. None at all opens the load."""

    via: str
    run: str
    specs: list[Spec]
    once: bool = False  #: nor those whose jids the server knows otherwise


class CloseLoad(Command[Loaded], frozen=True, gc=False):
    """Nothing more is taken in, and its jids are forgotten. A run that nobody knows is closed from the beginning."""

    run: str


def digest(jid: str) -> bytes:
    """Sixteen bytes that no two jids share."""
    if len(jid) == _HEX:
        try:
            raw = bytes.fromhex(jid)
        except ValueError:
            pass
        else:
            if raw.hex() == jid:
                return raw
    return blake2b(jid.encode(), digest_size=16).digest()

"""Bulk loads: a program sends many jobs in many calls, some jobs repeatedly, and each is enqueued exactly once.

The program names the load, its run. The server remembers a digest of every jid of the run until the load is closed.
After that it remembers only the totals.

A load may also be idempotent by jid over all runs (`once`). Then a job is not enqueued if a job of its jid is alive, or
if another such load sent that jid in the last days (model.md section 7).
"""

from enum import IntEnum
from hashlib import blake2b
from typing import Final

import msgspec

from crossdock.model.commands.core import Command
from crossdock.model.job import Spec

#: Loads that may be open at a time. A load is closed after `IDLE_S` without a call.
OPEN_AT_MOST: Final = 64
IDLE_S: Final = 7 * 86_400.0

#: Jids of all open loads together. Each takes about a hundred bytes.
JIDS_AT_MOST: Final = 10_000_000

#: Closed loads whose totals are remembered, the newest ones.
CLOSED_AT_MOST: Final = 10_000

#: How long jids of `once` loads are remembered, and how many of the newest.
ONCE_S: Final = 7 * 86_400.0
ONCE_AT_MOST: Final = 1_000_000

#: A jid of this many hexadecimal digits is its own digest.
_HEX: Final = 32


class BulkLoad(msgspec.Struct, array_like=True):
    run: str
    opened: float  #: wall
    new: int = 0  #: jobs enqueued
    known: int = 0  #: jobs sent again, which were not enqueued
    closed: float | None = None  #: wall
    end: float = 0.0  #: steady; the load is closed then unless another call comes
    jids: set[bytes] = msgspec.field(default_factory=set)  #: digests; empty once it is closed
    lapsed: bool = False  #: it was closed because no call came for `IDLE_S`


class LoadRefusal(IntEnum):
    """Why a call enqueued nothing."""

    CLOSED = 1
    TOO_MANY_OPEN = 2
    TOO_MANY_JIDS = 3
    LAPSED = 4


class Loaded(msgspec.Struct, frozen=True, gc=False):
    """The result of a call, with the totals of the load after it."""

    new: int
    known: int
    total_new: int
    total_known: int
    refused: LoadRefusal | None = None


class LoadJobs(Command[Loaded], frozen=True, gc=False):
    """Enqueue those of these jobs whose jids the run has not sent yet. They have no links. A call without jobs opens
    the load.
    """

    via: str
    run: str
    specs: list[Spec]
    once: bool = False  #: also leave out jids that the server knows from elsewhere


class CloseLoad(Command[Loaded], frozen=True, gc=False):
    """Close the load and forget its jids. A run that is not known is closed from the start."""

    run: str


def digest(jid: str) -> bytes:
    """A digest of 16 bytes, different for every jid."""
    if len(jid) == _HEX:
        try:
            raw = bytes.fromhex(jid)
        except ValueError:
            pass
        else:
            if raw.hex() == jid:
                return raw
    return blake2b(jid.encode(), digest_size=16).digest()

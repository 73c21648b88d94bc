"""Encode and decode journal entries: the events of one group commit, as msgpack."""

import zlib
from typing import Final

import msgspec

from crossdock.model.errors import Newer
from crossdock.model.events import AnyEvent

#: Written into each entry and snapshot. A reader refuses a newer version.
EVENT_VERSION: Final = 1


class JournalEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The events of one group commit: one entry of the journal."""

    version: int
    wall: float
    steady: float  #: so that steady time continues over a restart
    events: list[AnyEvent]


encode_entry = msgspec.msgpack.Encoder().encode


decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode


class _Versioned(msgspec.Struct, array_like=True):
    """The beginning of an entry of any version."""

    version: int


_begin = msgspec.msgpack.Decoder(_Versioned).decode


def refuse_newer_entry(seq: int, entry: bytes, by: str = "") -> None:
    """Raises Newer. Bytes that are not an entry are accepted here; decoding them gives the error."""
    try:
        version = _begin(entry).version
    except msgspec.MsgspecError:
        return
    if version > EVENT_VERSION:
        raise Newer(f"journal entry {seq}, of event version", version, EVENT_VERSION, by)


def entry_checksum(seq: int, entry: bytes) -> int:
    """CRC-32 of the entry and its number, stored beside it."""
    return zlib.crc32(entry, seq & 0xFFFFFFFF)

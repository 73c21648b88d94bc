"""Reads journal entries directly from SQLite's pages, for salvage.

SQLite reads through the B-tree and stops at the first damaged page. Here each leaf page is read by itself. Entries have
their own checksum, so an entry is taken from any leaf page of the database or of the write-ahead log where its checksum
is correct.

The format is described in https://sqlite.org/fileformat2.html#b_tree_pages.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from crossdock.journal.data_dir import DATABASE
from crossdock.journal.sqlite import wal
from crossdock.journal.sqlite.reader import is_intact
from crossdock.journal.sqlite.schema import PAGE_BYTES

_LEAF: Final = 0x0D
_FIRST_HEADER: Final = 100  #: bytes of the file's header, on page 1
#: Bytes of a long payload that stay on the leaf page, as the format defines them.
_LOCAL_MOST: Final = PAGE_BYTES - 35
_LOCAL_LEAST: Final = (PAGE_BYTES - 12) * 32 // 255 - 23
_IN_CHAIN: Final = PAGE_BYTES - 4
_PAYLOAD_MOST: Final = 1 << 30

#: Finds a page by its number, b"" if there is none.
_Pages = Callable[[int], bytes]


def readable_entries(data_dir: Path, after: int) -> dict[int, bytes]:
    """Each entry after `after` that can be read anywhere in the journal of the data directory."""
    found: dict[int, bytes] = {}
    database = data_dir / DATABASE
    if database.exists():
        with database.open("rb") as file:

            def page(number: int) -> bytes:
                file.seek((number - 1) * PAGE_BYTES)
                data = file.read(PAGE_BYTES)
                return data if number and len(data) == PAGE_BYTES else b""

            number = 1
            while data := page(number):
                _collect(found, data, page, after, _FIRST_HEADER if number == 1 else 0)
                number += 1
            _from_log(found, data_dir / f"{DATABASE}-wal", page, after)
    return found


def _from_log(found: dict[int, bytes], path: Path, in_database: _Pages, after: int) -> None:
    """Read frames in the order they were written. The overflow pages of a leaf are the last ones written before the end
    of its transaction, so the leaves of a transaction are read at its end."""
    if not path.exists():
        return
    newest: dict[int, bytes] = {}
    leaves: list[bytes] = []
    with path.open("rb") as file:
        for frame in wal.Log(file).frames():
            newest[frame.page] = frame.data
            leaves.append(frame.data)
            if frame.commit:
                for data in leaves:
                    _collect(found, data, lambda number: newest.get(number) or in_database(number), after)
                leaves.clear()


def _collect(found: dict[int, bytes], data: bytes, page: _Pages, after: int, header: int = 0) -> None:
    if data[header] != _LEAF:
        return
    cells = int.from_bytes(data[header + 3 : header + 5], "big")
    for n in range(min(cells, PAGE_BYTES // 4)):
        at = header + 8 + 2 * n
        cell = _entry(data, int.from_bytes(data[at : at + 2], "big"), page)
        if cell is not None:
            seq, crc, entry = cell
            if seq > after and seq not in found and is_intact(seq, crc, entry):
                found[seq] = entry


def _entry(data: bytes, at: int, page: _Pages) -> tuple[int, int, bytes] | None:
    """Sequence number, checksum and bytes of the cell at `at`, if it looks like a journal entry."""
    try:
        size, at = _varint(data, at)
        seq, at = _varint(data, at)
        if not 0 < size <= _PAYLOAD_MOST:
            return None
        payload = _payload(data, at, size, page)
        end, at = _varint(payload, 0)
        kinds = []
        while at < end:
            kind, at = _varint(payload, at)
            kinds.append(kind)
        if len(kinds) != 3 or kinds[0] != 0 or kinds[2] < 12 or kinds[2] % 2:
            return None
        width = _INTEGERS[kinds[1]]
        crc = kinds[1] - 8 if width == 0 else int.from_bytes(payload[end : end + width], "big", signed=True)
        return seq, crc, payload[end + width : end + width + (kinds[2] - 12) // 2]
    except (IndexError, KeyError):
        return None


#: Bytes of an integer by its serial type. Types 8 and 9 are the constants 0 and 1.
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}


def _payload(data: bytes, at: int, size: int, page: _Pages) -> bytes:
    if size <= _LOCAL_MOST:
        return data[at : at + size]
    local = _LOCAL_LEAST + (size - _LOCAL_LEAST) % _IN_CHAIN
    local = local if local <= _LOCAL_MOST else _LOCAL_LEAST
    chain = int.from_bytes(data[at + local : at + local + 4], "big")
    return data[at : at + local] + b"".join(_overflow(chain, size - local, page))


def _overflow(number: int, left: int, page: _Pages) -> Iterator[bytes]:
    while left > 0:
        data = page(number)
        if not data:
            return
        yield data[4 : 4 + min(left, _IN_CHAIN)]
        left -= _IN_CHAIN
        number = int.from_bytes(data[:4], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at + n + 1

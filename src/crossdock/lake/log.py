"""Entries of the lake's Delta log, and their checksums.

An entry is a file `_delta_log/<version>.json` with one action a line. Delta has no checksums for it, and an entry that
a power cut has shortened at the end of a line looks complete. So each entry of Crossdock carries a checksum over its
actions in its `commitInfo`:

    crossdock.sum = <of all add, remove and txn actions>

Other fields do not change what a reader finds. The schema and the properties of the table are compared with those that
this program expects. Commits of other tools have no checksum.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.lake.checksums import BadSum

LOG: Final = "_delta_log"
HINT: Final = "_last_checkpoint"
SUM: Final = "crossdock.sum"

_OWN: Final = b"crossdock"
_ENTRY: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint.*\.parquet")
_PARTITION: Final = "date"


class Added(NamedTuple):
    path: str
    size: int
    date: str
    modified_ms: int
    data_change: bool
    stats: str


class Removed(NamedTuple):
    path: str
    data_change: bool
    at_ms: int


class Entry(NamedTuple):
    version: int
    adds: list[Added]
    removes: list[Removed]
    transactions: dict[str, int]


class Names(NamedTuple):
    """The files in the log's folder."""

    entries: list[int]  #: versions, ascending
    checkpoints: dict[int, list[str]]  #: version → file names
    hint: bool  #: whether `_last_checkpoint` exists

    @property
    def newest_checkpoint(self) -> int:
        return max(self.checkpoints, default=-1)

    @property
    def tail(self) -> list[int]:
        """The entries that a reader needs in addition to the newest checkpoint."""
        return [version for version in self.entries if version > self.newest_checkpoint]


def names_in(names: Iterable[str]) -> Names:
    entries: list[int] = []
    checkpoints: dict[int, list[str]] = {}
    hint = False
    for name in names:
        if found := _ENTRY.fullmatch(name):
            entries.append(int(found[1]))
        elif found := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(found[1]), []).append(name)
        hint = hint or name == HINT
    return Names(sorted(entries), checkpoints, hint)


def entry_name(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def sum_of(adds: Sequence[Added], removes: Sequence[Removed], transactions: Mapping[str, int]) -> str:
    body = msgspec.json.encode([sorted(adds), sorted(removes), sorted(transactions.items())])
    return blake2b(body, digest_size=16).hexdigest()


def decode_log_entry(version: int, data: bytes) -> Entry:
    """Raises BadSum if the entry is torn or damaged."""
    adds: list[Added] = []
    removes: list[Removed] = []
    transactions: dict[str, int] = {}
    said, lines = None, 0
    try:
        for line in data.splitlines():
            lines += 1
            for kind, action in msgspec.json.decode(line, type=dict[str, Any]).items():
                if kind == "add":
                    adds.append(_added(action))
                elif kind == "remove":
                    removes.append(Removed(action["path"], action["dataChange"], action.get("deletionTimestamp") or 0))
                elif kind == "txn":
                    transactions[action["appId"]] = action["version"]
                elif kind == "commitInfo":
                    said = action.get(SUM)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadSum(f"it is torn: {error}") from error
    if not lines:
        raise BadSum("it is torn: it is empty")
    acts = bool(adds or removes or transactions)
    if said is None and acts and _OWN in data:
        raise BadSum("its checksum is missing")
    if said is not None and said != sum_of(adds, removes, transactions):
        raise BadSum("it fails its checksum")
    return Entry(version, adds, removes, transactions)


def _added(action: dict[str, Any]) -> Added:
    date = action["partitionValues"].get(_PARTITION) or ""
    stats = action.get("stats") or ""
    return Added(action["path"], action["size"], date, action["modificationTime"], action["dataChange"], stats)

"""Checkpoints of the lake's log, and their checksums.

A checkpoint is a Parquet file that replaces all earlier entries of the log. delta-rs writes it without checksums. They
are kept in `_checkpoints.json`, a sealed JSON object in the lake. It is written after the checkpoint is synced, and
entries of the log are deleted after that. So a checkpoint that is not in it was never finished, and can be deleted.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from crossdock.lake.checksums import BadSum, seal, unseal
from crossdock.lake.log import HINT, LOG, Names
from crossdock.lake.store import Store
from crossdock.model.errors import Damaged

SUMS: Final = "_checkpoints.json"


def read_sums(store: Store) -> dict[str, str]:
    """File name → checksum. Raises Damaged."""
    try:
        body = unseal(store.read(SUMS))
        if body is None:
            raise BadSum("its checksum is missing")
        return msgspec.json.decode(body, type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, BadSum, msgspec.MsgspecError) as error:
        raise Damaged(f"{store.uri}/{SUMS} cannot be read: {error}; restore it from a copy of the lake") from error


def record(store: Store, names: Names) -> None:
    """Sync the checkpoints that have no checksum yet, and record it. After a power cut they were removed before. An
    object store needs no checksums: it has its own."""
    if store.root is None:
        return
    known = read_sums(store)
    sums = {}
    for name in (each for files in names.checkpoints.values() for each in files):
        if name not in known:
            store.sync_file(f"{LOG}/{name}")
        sums[name] = known.get(name) or _sum(store.read(f"{LOG}/{name}"))
    if names.hint:
        store.sync_file(f"{LOG}/{HINT}")
    if sums != known:
        store.write(SUMS, seal(msgspec.json.encode(sums)))


def verify_newest(store: Store, names: Names) -> None:
    """Raises Damaged if the checkpoint that readers use fails its checksum. In an object store nothing is checked."""
    if store.root is None or not names.checkpoints:
        return
    known = read_sums(store)
    for name in names.checkpoints[names.newest_checkpoint]:
        if name in known and (why := fault(store, name, known)):
            raise Damaged(
                f"{store.uri}/{LOG}/{name} is damaged: {why}; no file was changed. Restore it from a copy of the lake"
            )


def fault(store: Store, name: str, known: dict[str, str]) -> str:
    """What is wrong with a checkpoint. Raises FileNotFoundError."""
    if name not in known:
        return "its checksum is missing"
    return "" if _sum(store.read(f"{LOG}/{name}")) == known[name] else "it fails its checksum"


def is_complete_without(names: Names, known: dict[str, str], version: int) -> bool:
    """Whether the log still has all entries that this checkpoint replaces, since the finished one before."""
    finished = [each for each, files in names.checkpoints.items() if all(file in known for file in files)]
    base = max((each for each in finished if each < version), default=-1)
    return not set(range(base + 1, version + 1)) - set(names.entries)


def hinted(store: Store) -> int | None:
    """The version that `_last_checkpoint` names. None: there is no such file. Raises BadSum."""
    try:
        found = msgspec.json.decode(store.read(f"{LOG}/{HINT}"), type=dict[str, object]).get("version")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise BadSum(str(error)) from error
    if not isinstance(found, int):
        raise BadSum("it names no version")
    return found


def _sum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()

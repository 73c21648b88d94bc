"""Recovery: loads the newest snapshot and folds the tail of the journal into it with the engine's `apply`."""

from collections.abc import Iterable

import msgspec

from crossdock.engine.decision import FollowUps
from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.journal.port import JournalView
from crossdock.journal.snapshot import file
from crossdock.model.errors import Damaged, UsageError
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, refuse_newer_entry


class Recovered(msgspec.Struct):
    state: EngineState
    seq: int  #: the last entry
    wall: float  #: when it was written
    steady: float  #: the same on the steady clock
    events: int = 0  #: in the tail
    bytes: int = 0  #: of the tail


def recover(journal: JournalView, until: int | None = None) -> Recovered:
    """Fold all entries up to `until` (None: all)."""
    base = journal.snapshot()
    if base is None:
        found = Recovered(EngineState(), 0, 0.0, 0.0)
    else:
        loaded = file.load(base.path)
        if loaded.seq != base.seq:
            raise Damaged(f"snapshot {base.path} ends with journal entry {loaded.seq}, the journal expects {base.seq}")
        found = Recovered(loaded.state, loaded.seq, loaded.wall, loaded.steady)
    for seq, data in journal.read(found.seq):
        if until is not None and seq > until:
            break
        _fold(found, seq, data)
    return found


def _fold(found: Recovered, seq: int, data: bytes) -> None:
    entry = decoded(seq, data)
    fold(found, seq, entry, entry.events)
    found.bytes += len(data)


def decoded(seq: int, data: bytes) -> JournalEntry:
    """Raises Damaged, also for an entry of a newer version."""
    try:
        entry = decode_entry(data)
    except msgspec.MsgspecError as error:
        refuse_newer_entry(seq, data)
        raise Damaged(f"journal entry {seq} cannot be read: {error}; restore a backup") from error
    if entry.version > EVENT_VERSION:
        refuse_newer_entry(seq, data)
    return entry


def fold(found: Recovered, seq: int, entry: JournalEntry, events: Iterable[AnyEvent]) -> None:
    """Apply these events of the entry. Raises Damaged if one does not fit; the state is unusable then."""
    state = found.state
    follow_ups: FollowUps = []  # ignored: what followed is in the same entry
    try:
        for event in events:
            apply(state, event, follow_ups)
            found.events += 1
    except (LookupError, ValueError, UsageError) as error:
        raise Damaged(f"journal entry {seq} does not fit the state before it: {error!r}; restore a backup") from error
    found.seq, found.wall, found.steady = seq, entry.wall, entry.steady
    state.discarded.clear()

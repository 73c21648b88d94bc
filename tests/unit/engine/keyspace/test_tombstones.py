"""Tombstones: the last change of removed keys, for clients that watch them."""

import pytest

from crossdock.engine.keyspace import tombstones
from crossdock.engine.keyspace.store import Entry, KeyStore
from crossdock.engine.keyspace.tombstones import Tombstones
from crossdock.model.commands.keyspace import Kind


def test_the_last_change_of_the_latest_keys_is_known() -> None:
    keys = Tombstones()
    for change in range(1, tombstones.AT_MOST + 1):
        keys.note(b"key %d" % change, change)
    assert keys.last_change(b"key 1") == 1
    assert keys.last_change(b"never there") == 0


def test_the_last_change_of_older_keys_is_never_too_early() -> None:
    keys = Tombstones()
    keys.note(b"kept by being noted again", 1)
    keys.note(b"old", 7)
    keys.note(b"older, changed before", 3)
    for number in range(tombstones.AT_MOST - 1):
        keys.note(b"kept by being noted again", 8)
        keys.note(b"key %d" % number, 9)
    assert keys.last_change(b"old") == keys.last_change(b"older, changed before") == 7
    assert keys.last_change(b"kept by being noted again") == 8


@pytest.mark.parametrize("few", [True, False])
def test_removing_all_keys_at_once_records_their_last_change(monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    monkeypatch.setattr(tombstones, "AT_MOST", 2 if few else 1)
    keys = KeyStore()
    for change, key in enumerate((b"a", b"b"), 1):
        keys.add(key, Entry(Kind.SET))
        keys.changes = keys.entries[key].version = change
    after = keys.emptied().tombstones
    assert (after.last_change(b"a"), after.last_change(b"b")) == ((1, 2) if few else (2, 2))
    assert after.last_change(b"never there") == (0 if few else 2)

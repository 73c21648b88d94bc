"""The key space and its reference execute random commands, flushes and restarts. Replay and snapshots agree."""

import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from crossdock.engine.keyspace.store import ENTRY_BYTES, elements, size_of
from crossdock.journal.snapshot import file
from crossdock.model import events as e
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import keyspace as k
from crossdock.model.errors import UsageError
from crossdock.model.events.keyspace import KeyKept, KeysDropped, KeySet, ListChanged, MembersChanged, ScriptKnown
from tests.model.key_reference import KeyReference
from tests.model.rig import Rig, fold
from tests.model.visible_keys import visible
from tests.support.picture import picture

KEYS = [b"a", b"b", b"\xff\x00", b"long " * 20]
keys = st.sampled_from(KEYS)
texts = st.binary(max_size=5)
ends = st.sampled_from([0.0, 0.5, 3.0, 60.0])
members = st.sampled_from([b"x", b"y", b"z"])
kinds = st.sampled_from([k.Kind.SET, k.Kind.HASH, k.Kind.SORTED])
scores = st.floats(allow_nan=False)


class KeysBesideReference(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.model = KeyReference()
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        self.folder.cleanup()

    def do(self, command: c.Command[Any]) -> None:
        now = self.rig.clock.now
        outcome = self.rig.do(command)
        expected = self.model.do(command, now)
        assert isinstance(command, c.Tick) or outcome == expected

    def kind(self, key: bytes) -> k.Kind | None:
        entry = self.rig.state.keys.live(key, self.rig.clock.now)
        return None if entry is None else entry.kind

    @rule(key=keys, value=texts, end=ends | st.none())
    def set_key(self, key: bytes, value: bytes, end: float | None) -> None:
        self.do(k.SetKey(key, value, end if not end else self.rig.clock.steady + end))

    @rule(dropped=st.lists(keys, max_size=3))
    def drop_keys(self, dropped: list[bytes]) -> None:
        self.do(k.DropKeys(dropped))

    @rule(key=keys, end=st.sampled_from([0.0, -1.0, 0.5, 3.0, 60.0]))
    def keep_key(self, key: bytes, end: float) -> None:
        self.do(k.KeepKey(key, self.rig.clock.steady + end if end else 0.0))

    @rule(key=keys, data=st.data(), put=st.lists(texts, max_size=3))
    def change_list(self, key: bytes, data: st.DataObject, put: list[bytes]) -> None:
        if self.kind(key) not in (None, k.Kind.LIST):
            with pytest.raises(UsageError):
                self.rig.do(k.ChangeList(key, 0, 0, [b"x"]))
            return
        entry = self.rig.state.keys.live(key, self.rig.clock.now)
        length = 0 if entry is None else len(entry.data)
        if length and data.draw(st.booleans()):
            drop = data.draw(st.sets(st.integers(0, length - 1)))
            self.do(k.ChangeList(key, 0, drop=sorted(drop)))
            return
        start = data.draw(st.integers(0, length))
        self.do(k.ChangeList(key, start, data.draw(st.integers(0, length - start)), put))

    @rule(key=keys, kind=kinds, put=st.lists(members, max_size=3), drop=st.lists(members, max_size=2), data=st.data())
    def change_members(
        self, key: bytes, kind: k.Kind, put: list[bytes], drop: list[bytes], data: st.DataObject
    ) -> None:
        if self.kind(key) not in (None, kind):
            with pytest.raises(UsageError):
                self.rig.do(k.ChangeMembers(key, kind, [(b"x", None)]))
            return
        values = {k.Kind.SET: st.none(), k.Kind.HASH: texts, k.Kind.SORTED: scores}[kind]
        self.do(k.ChangeMembers(key, kind, [(member, data.draw(values)) for member in put], drop))

    @rule(sha=st.sampled_from(["1", "2"]), dialect=st.sampled_from(["a", "b"]))
    def know_script(self, sha: str, dialect: str) -> None:
        self.do(k.KnowScript(sha, dialect))

    @rule()
    def forget_scripts(self) -> None:
        self.do(k.ForgetScripts())

    @rule()
    def flush(self) -> None:
        self.do(admin.Flush("redis"))

    @rule(seconds=st.sampled_from([0.0, 0.4, 2.5, 60.0]), limit=st.sampled_from([None, 1, 500]))
    def time_passes(self, seconds: float, limit: int | None) -> None:
        self.rig.clock.pass_by(seconds)
        if limit is not None:
            self.do(c.Tick(limit))

    @rule(how=st.sampled_from(["replay", "snapshot"]))
    def restart(self, how: str) -> None:
        if how == "replay":
            state = fold(self.rig.batches)
        else:
            path = Path(self.folder.name) / "snapshot"
            file.write(path, self.rig.state, 7, self.rig.clock.now.wall, self.rig.clock.now.steady)
            state = file.load(path).state
        assert picture(state) == picture(self.rig.state)
        self.rig.adopt(state)

    @invariant()
    def both_see_the_same(self) -> None:
        now = self.rig.clock.now
        alive = {key: value for key, value in self.model.keys.items() if not 0 < value[2] <= now.steady}
        assert visible(self.rig.state, now) == alive
        assert self.rig.state.scripts == self.model.scripts

    @invariant()
    def replay_agrees(self) -> None:
        assert picture(self.rig.replayed)["keys"] == picture(self.rig.state)["keys"]

    @invariant()
    def sizes_and_indexes_are_exact(self) -> None:
        space = self.rig.state.keys
        sizes = {
            key: ENTRY_BYTES + len(key) + size_of(entry.kind, elements(entry)) for key, entry in space.entries.items()
        }
        assert {key: entry.size for key, entry in space.entries.items()} == sizes
        assert space.size == sum(sizes.values())
        assert list(space.walk) == sorted((zlib.crc32(key), key) for key in space.entries)
        assert list(space.ends) == sorted((entry.end, key) for key, entry in space.entries.items() if entry.end)
        for entry in space.entries.values():
            assert entry.kind is k.Kind.STRING or len(entry.data), "an empty key exists"
            if entry.kind is k.Kind.SORTED:
                assert list(entry.data.order) == sorted((score, key) for key, score in entry.data.scores.items())


TestKeysBesideReference = KeysBesideReference.TestCase
TestKeysBesideReference.settings = settings(stateful_step_count=60)


def test_a_push_onto_a_long_list_is_a_small_event() -> None:
    rig = Rig()
    rig.do(k.ChangeList(b"l", 0, 0, [b"element"] * 100_000))
    for command in (k.ChangeList(b"l", 0, 0, [b"x"]), k.ChangeList(b"l", 100_001, 0, [b"x"]), k.ChangeList(b"l", 0, 1)):
        rig.do(command)
        assert len(rig.batches[-1]) < 100


def test_removing_most_of_a_long_list_takes_one_pass() -> None:
    rig = Rig()
    rig.do(k.ChangeList(b"l", 0, 0, [b"element"] * 600_000))
    begun = time.process_time()
    rig.do(k.ChangeList(b"l", 0, drop=range(599_999)))
    assert time.process_time() - begun < 1.5, "each element was searched from an end"
    assert list(rig.state.keys.entries[b"l"].data) == [b"element"]
    assert rig.state.keys.size < 1_000


def test_expired_keys_are_removed_in_slices() -> None:
    rig = Rig()
    for n in range(10):
        rig.do(k.SetKey(b"%d" % n, b"", rig.clock.steady + 5.0))
    assert rig.engine.due_in(rig.clock.now) == 5.0
    rig.clock.pass_by(5.0)
    assert rig.do(c.Tick(4)).more
    assert isinstance(rig.last, KeysDropped)
    assert len(rig.state.keys.entries) == 6
    assert not rig.do(c.Tick(500)).more
    assert rig.state.keys.entries == {}
    assert rig.engine.due_in(rig.clock.now) is None


def test_a_command_that_changes_nothing_makes_no_event() -> None:
    rig = Rig()
    rig.do(k.ChangeMembers(b"h", k.Kind.HASH, [(b"a", b"1")]))
    before = len(rig.batches)
    rig.do(k.ChangeMembers(b"h", k.Kind.HASH, [(b"a", b"1")], [b"x"]))
    rig.do(k.DropKeys([b"x"]))
    rig.do(k.KeepKey(b"x", 0.0))
    rig.do(k.ChangeList(b"l", 0))
    rig.do(k.ForgetScripts())
    assert len(rig.batches) == before


def test_key_events_are_hard() -> None:
    """The reply to a changed key waits until its journal entry is durable."""
    assert not {KeySet, KeysDropped, KeyKept, ListChanged, MembersChanged, ScriptKnown} & e.SOFT


def test_paging_never_skips_a_key_that_exists_throughout() -> None:
    rig = Rig()
    for n in range(100):
        rig.do(k.SetKey(b"stays %d" % n, b""))
        rig.do(k.SetKey(b"goes %d" % n, b""))
    cursor, seen, pages = 0, set[bytes](), 0
    while True:
        cursor, page = rig.state.keys.page(cursor, 7)
        seen.update(page)
        rig.do(k.DropKeys([b"goes %d" % pages]))
        rig.do(k.SetKey(b"comes %d" % pages, b""))
        pages += 1
        if not cursor:
            break
    assert {key for key in seen if key.startswith(b"stays")} == {b"stays %d" % n for n in range(100)}

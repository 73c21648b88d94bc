"""Snapshot files: loaded completely and equal, or refused."""

import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from crossdock.engine.engine import apply
from crossdock.engine.records.stats import WAIT
from crossdock.journal.snapshot import columns
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.journal.snapshot.columns import pack
from crossdock.model.clock import DAY, Now
from crossdock.model.commands.core import Enqueue
from crossdock.model.errors import Damaged
from crossdock.model.events import Configured
from crossdock.model.job import Extra, Failure, Result
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, ResquData
from crossdock.model.records import Pause
from crossdock.protocols.faktory.job import read_one, spec
from tests.support.states import Story, eventful, picture


@pytest.fixture
def story() -> Story:
    return eventful()


@pytest.fixture
def file(story: Story, tmp_path: Path) -> Path:
    path = tmp_path / "snapshot-0000000000000007"
    snapshot_file.write(path, story.state, 7, story.now.wall, story.now.steady)
    return path


def test_a_loaded_snapshot_equals_the_written_state(story: Story, file: Path) -> None:
    loaded = snapshot_file.load(file)
    assert picture(loaded.state) == picture(story.state)
    assert (loaded.seq, loaded.wall, loaded.steady) == (7, story.now.wall, story.now.steady)


def test_a_snapshot_without_pauses_and_audit_trail_loads(story: Story, file: Path) -> None:
    """As it was written before these records and rate limits existed."""
    data = file.read_bytes()
    end = len(data) - len(snapshot_file._block(snapshot_file.Footer(len(story.state.jobs))))
    start = last_block(data, end)
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(data[start + 8 : end], strict=False)[:-6])
    block = struct.pack("<II", len(older), zlib.crc32(older)) + older
    file.write_bytes(data[:start] + block + data[end:])
    state = snapshot_file.load(file).state
    assert state.queues["other"].pause == Pause(state.counters.at)
    assert not state.audit
    assert (state.once.keep_s, state.once.at_most, state.outcomes) == (3_600.0, 1_000_000, {})


def last_block(data: bytes, end: int) -> int:
    """The beginning of the block that ends there."""
    for start in range(end - 9, 0, -1):
        body = data[start + 8 : end]
        if data[start : start + 8] == struct.pack("<II", len(body), zlib.crc32(body)):
            return start
    raise AssertionError("there is no such block")


def test_deleted_statistics_stay_deleted_after_a_restart(tmp_path: Path) -> None:
    """Also if their retention is longer than it was when they were deleted."""
    story, path = Story(), tmp_path / "snapshot"
    stats = story.state.stats
    for day in (0, 40):
        stats.book("q", day * DAY + 1.0, WAIT, 1.0)
    apply(story.state, Configured(story.now.wall, "stats-history", "90"))
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    loaded = snapshot_file.load(path).state.stats
    for each in (stats, loaded):
        for day in (1, 41):
            each.book("q", day * DAY + 1.0, WAIT, 1.0)
    assert list(loaded.days["q"]) == [40 * DAY, 41 * DAY]
    assert (loaded.days, loaded.gone) == (stats.days, stats.gone)


def test_many_jobs_are_written_in_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_JOBS", 100)
    story = Story()
    story.push(*(f"job-{n:05d}" for n in range(1_234)))
    path = tmp_path / "snapshot"
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    assert picture(snapshot_file.load(path).state) == picture(story.state)


@pytest.mark.parametrize("size", [2, 10, 1_000])
def test_chunks_of_large_jobs_are_bounded_in_bytes(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand jobs of 430 KB in one block would exceed its length field."""
    monkeypatch.setattr(columns, "_BYTES", 100)
    story = Story()
    story.push(*(f"job-{n:05d}" for n in range(1_234)), payload=b"x" * size)
    sizes = [len(chunk) for chunk in columns.chunks(story.state.jobs.values())]
    assert (sum(sizes), max(sizes)) == (1_234, 100 // size + 1)
    path = tmp_path / "snapshot"
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    assert picture(snapshot_file.load(path).state) == picture(story.state)


def test_every_long_field_of_a_job_counts_towards_the_chunk() -> None:
    extras = [
        Extra(custom=b"x" * 1_000_000),
        Extra(result=Result(True, b"x" * 1_000_000)),
        Extra(error=Failure("", "x" * 500_000, ("x" * 500_000,), 0.0, 0.0, 0.0, lost=False)),
        Extra(history=(HistoryEntry(0.0, HistoryKind.SAID, "x" * 500_000, data=b"x" * 500_000),)),
        Extra(protocol_data=ResquData(b"x" * 1_000_000, "", "")),
    ]
    for extra in extras:
        story = Story()
        story.push(*(f"job-{n}" for n in range(100)))
        for job in story.state.jobs.values():
            job.extra = extra
        assert [len(chunk) for chunk in columns.chunks(story.state.jobs.values())] == [34, 34, 32]


def test_an_empty_state_can_be_written_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    snapshot_file.write(path, Story().state, 1, 2.0, 3.0)
    assert picture(snapshot_file.load(path).state) == picture(Story().state)


def test_a_loaded_state_behaves_like_the_original(story: Story, file: Path) -> None:
    """Ready order, leases and counters work, and are not only equal."""
    loaded = Story()
    loaded.engine.state = snapshot_file.load(file).state
    loaded.now = story.now
    for each in (story, loaded):
        each.push("one-more-1", "one-more-2", priority=3)
        while each.lease() is not None:
            pass
    assert picture(loaded.state) == picture(story.state)


def test_a_flipped_bit_is_refused_wherever_it_is_and_nothing_is_touched(file: Path) -> None:
    good = file.read_bytes()
    for at in (*range(100), *range(100, len(good), 7)):
        bad = bytearray(good)
        bad[at] ^= 1 << (at % 8)
        file.write_bytes(bad)
        with pytest.raises(Damaged, match="restore a backup"):
            snapshot_file.load(file)
        assert file.read_bytes() == bad
    file.write_bytes(good)
    snapshot_file.load(file)


def test_a_file_cut_short_is_refused(file: Path) -> None:
    good = file.read_bytes()
    for size in (*range(100), *range(100, len(good), 7), *range(len(good) - 50, len(good))):
        file.write_bytes(good[:size])
        with pytest.raises(Damaged):
            snapshot_file.load(file)


def test_a_damaged_length_is_refused_without_allocating(file: Path) -> None:
    """A block with a length of 4 GiB must not allocate memory."""
    good = file.read_bytes()
    at = good.index(b"\n") + 1
    file.write_bytes(good[:at] + struct.pack("<I", 0xFFFFFFFF) + good[at + 4 :])
    with pytest.raises(Damaged, match="ends too early"):
        snapshot_file.load(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        snapshot_file.load(tmp_path / "snapshot")


def test_a_newer_format_is_refused_by_name(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "snapshot"
    monkeypatch.setattr(snapshot_file, "_FORMAT", snapshot_file._FORMAT + 1)
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    monkeypatch.undo()
    with pytest.raises(Damaged, match="newer Crossdock"):
        snapshot_file.load(path)


def test_columns_of_different_lengths_are_refused(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot"
    wrongs: list[dict[str, list[object]]] = [{"jid": []}, {"names": []}, {"custom": [b""]}]
    for wrong in wrongs:
        monkeypatch.setattr(
            snapshot_file, "pack", lambda jobs, wrong=wrong: msgspec.structs.replace(pack(jobs), **wrong)
        )
        snapshot_file.write(path, story.state, 1, 0.0, 0.0)
        with pytest.raises(Damaged, match="do not match"):
            snapshot_file.load(path)


def test_values_that_jobs_share_are_one_object(tmp_path: Path) -> None:
    """As in the server that wrote them. Otherwise a million jobs take a fifth more memory after a restart."""
    path = tmp_path / "snapshot"
    now = Now(1_800_000_000.5, 7.0)
    story = Story()
    specs = [
        spec(read_one(b'{"jid":"job-%05d","jobtype":"T","args":[],"priority":3,"custom":{"a":1}}' % n), now)
        for n in (1, 2)
    ]
    story.do(Enqueue("faktory", specs))
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    one, two = snapshot_file.load(path).state.jobs.values()
    for name in ("queue", "kind", "origin", "policy"):
        assert getattr(one, name) is getattr(two, name), name
    assert one.extra is not None and two.extra is not None
    assert one.extra.protocol_data is two.extra.protocol_data
    assert one.sort_key is not None
    assert (one.since, one.sort_key[2]) == (one.created, one.created)
    assert one.since is one.created is one.sort_key[2]

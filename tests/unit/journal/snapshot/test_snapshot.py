"""Snapshot files: whole and equal, or refused."""

import struct
from pathlib import Path
from typing import Any

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


def test_what_was_written_is_what_is_read(story: Story, file: Path) -> None:
    loaded = snapshot_file.load(file)
    assert picture(loaded.state) == picture(story.state)
    assert (loaded.seq, loaded.wall, loaded.steady) == (7, story.now.wall, story.now.steady)


def test_statistics_that_are_gone_are_gone_after_a_restart(tmp_path: Path) -> None:
    """Though their history is longer by then than it was when they went."""
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


def test_many_jobs_go_in_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MANY", 100)
    story = Story()
    story.push(*(f"job-{n:05d}" for n in range(1_234)))
    path = tmp_path / "snapshot"
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    assert picture(snapshot_file.load(path).state) == picture(story.state)


@pytest.mark.parametrize("size", [2, 10, 1_000])
def test_large_jobs_go_few_at_a_time(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of 430 KB in one block were more than its length can say."""
    monkeypatch.setattr(columns, "_BYTES", 100)
    story = Story()
    story.push(*(f"job-{n:05d}" for n in range(1_234)), payload=b"x" * size)
    sizes = [len(chunk) for chunk in columns.chunks(story.state.jobs.values())]
    assert (sum(sizes), max(sizes)) == (1_234, 100 // size + 1)
    path = tmp_path / "snapshot"
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    assert picture(snapshot_file.load(path).state) == picture(story.state)


def test_whatever_a_job_carries_counts() -> None:
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


def test_an_empty_state_goes_in_too(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    snapshot_file.write(path, Story().state, 1, 2.0, 3.0)
    assert picture(snapshot_file.load(path).state) == picture(Story().state)


def test_a_loaded_state_goes_on_like_the_one_it_came_from(story: Story, file: Path) -> None:
    """Ready order, leases and counters are live again, not only equal."""
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


def test_a_length_that_lies_is_not_believed(file: Path) -> None:
    """A block that claims 4 GiB must not be waited or allocated for."""
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


@pytest.mark.parametrize("form", [1, 2])
def test_a_file_of_an_older_format_is_read(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: int
) -> None:
    """It has jobs one by one. The first one's places have no tie: only jobs of qless have one, and there were none."""
    path = tmp_path / "snapshot"
    before = picture(story.state)
    places: dict[int, Any] = {number: job.sort_key for number, job in story.state.jobs.items()}
    for number, sort_key in places.items():
        if sort_key is not None and form == 1:
            assert sort_key[3] == b""
            story.state.jobs[number].sort_key = (*sort_key[:3], sort_key[4])  # as it was then
    monkeypatch.setattr(snapshot_file, "_FORMAT", form)
    monkeypatch.setattr(snapshot_file, "pack", list)
    snapshot_file.write(path, story.state, 1, 0.0, 0.0)
    monkeypatch.undo()
    assert picture(snapshot_file.load(path).state) == before
    for number, sort_key in places.items():
        story.state.jobs[number].sort_key = sort_key


def test_columns_that_do_not_fit_each_other_are_refused(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot"
    wrongs: list[dict[str, list[object]]] = [{"jid": []}, {"names": []}, {"custom": [b""]}]
    for wrong in wrongs:
        monkeypatch.setattr(
            snapshot_file, "pack", lambda jobs, wrong=wrong: msgspec.structs.replace(pack(jobs), **wrong)
        )
        snapshot_file.write(path, story.state, 1, 0.0, 0.0)
        with pytest.raises(Damaged, match="do not fit"):
            snapshot_file.load(path)


def test_what_jobs_have_in_common_is_one_object(tmp_path: Path) -> None:
    """As in the server that made them: a million of them would else be a fifth larger after a restart."""
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

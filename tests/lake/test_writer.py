"""The writer: whatever it is given is in the lake once, under the dates it happened on, wherever it died."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from crossdock.cli.main import main
from crossdock.lake import manifest
from crossdock.lake.event_rows import tables
from crossdock.lake.redaction import Payloads
from crossdock.lake.segments import look
from crossdock.lake.writer import LakeInUse, OtherJournal, Writer
from crossdock.model.errors import Damaged
from crossdock.model.events.codec import decode_entry, encode_entry
from tests.lake.source import ListSource, rows_in, rows_of, story, write_all
from tests.model.bench import Bench

#: What touches the disk on the way of a segment.
CALLS: Final = ("open", "fsync", "fdatasync", "rename", "mkdir", "write")


def test_every_row_is_there_once_and_under_its_date(tmp_path: Path) -> None:
    source = ListSource(story())
    write_all(tmp_path, source)
    assert rows_in(tmp_path) == rows_of(story())
    done = manifest.read_done(tmp_path)
    assert done is not None
    assert (done.first, done.last, done.gaps) == (1, len(story()), [])
    assert len(done.dates) >= 2, "the story goes over midnight"
    assert done.rows == len(rows_of(story()))
    assert source.synced == len(story()), "the journal was synced before anything of it was told"


def test_how_it_is_cut_changes_nothing(tmp_path: Path) -> None:
    for each in (37, 5_000):
        write_all(tmp_path / str(each), ListSource(story()), each)
        assert rows_in(tmp_path / str(each)) == rows_of(story())


def test_a_batch_of_too_many_rows_takes_no_numbers_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = story(100)
    sizes = [len(rows_of([batch])) for batch in batches]
    most, large = max(sizes), sizes.index(max(sizes)) + 1
    monkeypatch.setattr(tables, "ROWS_AT_MOST", most - 1)
    with pytest.raises(Damaged, match=f"batch {large} has more than {most - 1} rows"):
        write_all(tmp_path, ListSource(batches), 1)
    done = manifest.read_done(tmp_path)
    assert (done.last if done else 0) == large - 1, "it stops before that one"
    monkeypatch.setattr(tables, "ROWS_AT_MOST", most)
    write_all(tmp_path, ListSource(batches))
    assert rows_in(tmp_path) == rows_of(batches)


def test_a_clock_that_was_set_back_is_reported_and_its_events_stay_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench()
    bench.push("before")
    bench.clock.jump(-3_600.0)
    bench.push("one")
    bench.push("two")
    bench.clock.pass_by(3_598.0)
    bench.push("nearly")
    bench.clock.pass_by(60.0)
    bench.push("after")
    write_all(tmp_path / "lake", ListSource(bench.batches), 2)
    done = manifest.read_done(tmp_path / "lake")
    assert done is not None and done.set_back is not None
    assert (done.set_back.first, done.set_back.last, done.set_back.batches) == (2, 3, 2)
    assert done.set_back.seconds == pytest.approx(3_600.0, abs=1)
    assert main(["lake", "status", "--data", str(tmp_path)]) == 0
    said = "clock: the server's was set back: events of 2 batches, 2 to 3, are dated up to 1h after it\n"
    assert said in capsys.readouterr().out


class Crash(BaseException):
    """The process is gone: nothing after it happens."""


class Mortal:
    """The system's calls, of which the n-th is the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.calls = 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            self.left -= 1
            if self.left == 0:
                raise Crash
            return call(*args, **kwargs)

        return counted


def test_a_crash_at_any_call_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three segments over two dates; each call of the system in turn is the last one that the writer makes."""
    batches = story(100)
    truth = rows_of(batches)
    mortal = Mortal(monkeypatch)
    write_all(tmp_path / "whole", ListSource(batches), 60)
    calls, mortal.calls = mortal.calls, 0
    assert calls > 30
    redone = 0
    for dies_at in range(1, calls + 1):
        lake, source = tmp_path / str(dies_at), ListSource(batches)
        mortal.left = dies_at
        with pytest.raises(Crash):
            write_all(lake, source, 60)
        mortal.left = -1
        planned, done = manifest.read_next(lake), manifest.read_done(lake)
        redone += planned is not None and planned.last > (done.last if done else 0)
        # The journal was trimmed behind the lake, as far as that had said it was.
        source.trimmed = max(0, (done.last if done else 0) - 1)
        write_all(lake, source, 37)
        assert rows_in(lake) == truth, f"after a crash at call {dies_at}"
    assert redone > 5, "some crashes left a range in the middle"


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    first = Writer(tmp_path, ListSource(story()))
    with pytest.raises(LakeInUse, match=r"lake\.dir"):
        Writer(tmp_path, ListSource(story()))
    first.close()
    Writer(tmp_path, ListSource(story())).close()


def test_another_journal_is_refused(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:500]))
    before = rows_in(tmp_path)
    for other in (story()[:400], story()[100:900]):
        with pytest.raises(OtherJournal, match="restored from a backup"):
            Writer(tmp_path, ListSource(other))
    assert rows_in(tmp_path) == before
    write_all(tmp_path, ListSource(story()))
    assert rows_in(tmp_path) == rows_of(story())


def test_what_was_trimmed_while_it_was_off_is_a_gap_that_is_named(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:500]))
    write_all(tmp_path, ListSource(story(), trimmed=600))
    truth = rows_of(story())
    kept = {seq: row for seq, row in truth.items() if not 500 < seq >> 22 <= 600}
    found = rows_in(tmp_path)
    assert found.keys() == kept.keys()
    done = manifest.read_done(tmp_path)
    assert done is not None and done.gaps == [manifest.Gap(501, 600)]


def test_a_lake_that_begins_late(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story(), trimmed=300))
    assert rows_in(tmp_path).keys() == rows_of(story(), after=300).keys()
    done = manifest.read_done(tmp_path)
    assert done is not None and (done.first, done.gaps) == (301, [])


def test_dates_that_are_over_go_whole(tmp_path: Path) -> None:
    source = ListSource(story())
    write_all(tmp_path, source)
    dates = sorted(look(tmp_path).done.dates)  # type: ignore[union-attr]
    writer = Writer(tmp_path, source)
    now = writer.done.dates[dates[-1]].steady
    assert writer.expire(365, now) == []
    assert writer.expire(0, now) == dates[:-1]
    writer.close()
    assert [path.name for path in (tmp_path / "events").iterdir()] == [f"date={dates[-1]}"]
    assert {row["at"] // 86_400 for row in rows_in(tmp_path).values()} == {now // 86_400}


def test_a_clock_that_jumps_lets_no_date_go(tmp_path: Path) -> None:
    """Ages are those of the steady clock, whatever dates the events have."""
    batches = [replace(decode_entry(batch), steady=float(seq)) for seq, batch in enumerate(story(), 1)]
    source = ListSource([encode_entry(batch) for batch in batches])
    write_all(tmp_path, source)
    writer = Writer(tmp_path, source)
    last = max(total.steady for total in writer.done.dates.values())
    assert len(writer.done.dates) > 1
    assert writer.expire(1, last) == []
    before = sorted(writer.done.dates)
    assert writer.expire(1, last + 86_400.0) == before[:-1], "the newest is a day old and no more"
    writer.close()


def test_dates_of_an_older_lake_count_from_the_first_look(tmp_path: Path) -> None:
    source = ListSource(story())
    write_all(tmp_path, source)
    writer = Writer(tmp_path, source)
    dates = {day: replace(total, steady=0.0) for day, total in writer.done.dates.items()}
    writer.done = replace(writer.done, dates=dates)
    assert writer.expire(1, 5_000.0) == []
    assert writer.expire(1, 5_000.0 + 86_400.0) == []
    assert writer.expire(1, 5_001.0 + 86_400.0) == sorted(dates)
    writer.close()


def test_a_date_that_was_let_go_by_half_is_gone_for_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(story())
    write_all(tmp_path, source)
    dates = sorted(look(tmp_path).done.dates)  # type: ignore[union-attr]
    writer = Writer(tmp_path, source)
    monkeypatch.setattr("shutil.rmtree", lambda path: next(iter(path.iterdir())).unlink())
    writer.expire(0, writer.done.dates[dates[-1]].steady)
    writer.close()
    seen = look(tmp_path)
    assert seen.faults == []
    assert {segment.date for segment in seen.segments} == {dates[-1]}
    monkeypatch.undo()
    writer = Writer(tmp_path, source)
    writer.expire(0, writer.done.dates[dates[-1]].steady)
    writer.close()
    assert [path.name for path in (tmp_path / "events").iterdir()] == [f"date={dates[-1]}"]


@pytest.mark.parametrize("text", [b"", b"{", b'{"format": 99, "lake": "x", "first": 1, "last": 1, "crc": 0}'])
def test_a_manifest_that_cannot_be_read_stops_the_writer(tmp_path: Path, text: bytes) -> None:
    write_all(tmp_path, ListSource(story()))
    (tmp_path / manifest.DONE).write_bytes(text)
    with pytest.raises(Damaged, match=r"lake\.dir|newer"):
        Writer(tmp_path, ListSource(story()))


def test_a_batch_that_is_none_stops_it_and_changes_nothing(tmp_path: Path) -> None:
    write_all(tmp_path, ListSource(story()[:500]), 500)
    with pytest.raises(Damaged, match="batch 601"):
        write_all(tmp_path, ListSource([*story()[:600], b"\x00"]), 500)
    assert rows_in(tmp_path) == rows_of(story()[:500])


def test_payloads_as_the_settings_say(tmp_path: Path) -> None:
    write_all(tmp_path / "hash", ListSource(story()), payloads=Payloads("hash"))
    write_all(tmp_path / "none", ListSource(story()), payloads=Payloads("none"))
    hashed, none = rows_in(tmp_path / "hash"), rows_in(tmp_path / "none")
    pushed = [seq for seq, row in rows_of(story()).items() if row["payload"] is not None]
    assert pushed
    assert all(hashed[seq]["payload"] is None and len(hashed[seq]["payload_hash"]) == 64 for seq in pushed)
    assert all(row["payload"] is None and row["payload_hash"] is None for row in none.values())

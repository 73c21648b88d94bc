"""Jobs of the past, chosen by what happened to them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from crossdock.lake.query import Filter, LakeNotWhole, choose, has, jobs
from crossdock.lake.redaction import Payloads
from crossdock.lake.segments import look
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry
from crossdock.model.job import Extra, Form
from tests.lake.source import ListSource, write_all
from tests.model.bench import RULES, Bench, spec
from tests.pipeline.lakes import Lake
from tests.support.all_protocols import AllProtocols

DAY = 86_400.0


@pytest.fixture
def past(tmp_path: Path) -> tuple[Path, Bench]:
    """Two days: good succeeded, bad failed and is dead, gone was removed, put got another payload, late is ready."""
    bench = Bench()
    bench.do(c.Start())
    tagged = replace(spec("good", "mail"), extra=Extra(b'{"c":1}', tags=("red",)), priority=3)
    bench.do(c.Enqueue("faktory", [tagged, spec("bad", policy=replace(RULES, max_failures=-1)), spec("gone")]))
    bench.lease("mail")
    bench.succeed("good")
    bench.lease()
    bench.fail("bad")
    bench.do(admin.Remove("control", "discarded", [3], frozenset({bench.job(3).state})))
    bench.do(m.Put("qless", 1.0, "w", "put", "moves", "klass", b'{"a":1}', Form.JSON))
    bench.do(m.Put("qless", 2.0, "w", "put", "moves", "klass", b'{"a":2}', Form.JSON))
    bench.clock.pass_by(DAY)
    bench.push("late")
    lake = Lake(tmp_path / "lake")
    for batch in bench.batches:
        lake.add(decode_entry(batch).events)
    lake.close()
    return tmp_path / "lake", bench


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (Filter(), ["good", "bad", "gone", "put", "late"]),
        (Filter(queue="mail"), ["good"]),
        (Filter(queue="default", outcome="succeeded"), []),
        (Filter(outcome="succeeded"), ["good"]),
        (Filter(outcome="failed"), ["bad"]),
        (Filter(outcome="dead", group="Group"), ["bad"]),
        (Filter(outcome="dead", group="Other"), []),
        (Filter(outcome="removed"), ["gone"]),
        (Filter(kind="klass"), ["put"]),
        (Filter(tag="red"), ["good"]),
        (Filter(tag="blue"), []),
        (Filter(jid="late"), ["late"]),
        (Filter(jid="late", since=-1e13, until=1e18), ["late"]),
    ],
)
def test_what_is_meant(past: tuple[Path, Bench], which: Filter, found: list[str]) -> None:
    chosen = choose(past[0], which)
    assert [each.jid for each in jobs(chosen)] == found
    assert (len(chosen.numbers), chosen.unknown, chosen.bare) == (len(found), 0, 0)
    assert [each.jid for each in jobs(chosen, 1)] == found[:1]


def test_which_names_history_knows(past: tuple[Path, Bench]) -> None:
    folder, _ = past
    assert [has(folder, "queue", name) for name in ("mail", "moves", "nope")] == [True, True, False]
    assert [has(folder, "error_group", name) for name in ("Group", "mail")] == [True, False]


def test_by_time(past: tuple[Path, Bench]) -> None:
    folder, bench = past
    middle = bench.now.wall - DAY / 2
    assert [each.jid for each in jobs(choose(folder, Filter(since=middle)))] == ["late"]
    assert "late" not in [each.jid for each in jobs(choose(folder, Filter(until=middle)))]


def test_all_that_makes_a_job(past: tuple[Path, Bench]) -> None:
    good, *_ = jobs(choose(past[0], Filter(queue="mail")))
    assert good[1:] == ("good", "mail", "kind", 3.0, 25, None, "json", b"[]", b'{"c":1}', ["red"])
    [put] = jobs(choose(past[0], Filter(kind="klass")))
    assert put.payload == b'{"a":2}'


@pytest.mark.parametrize("then", [Payloads("hash"), Payloads("none"), Payloads("full", ["secret"])])
def test_a_payload_that_was_replaced_by_one_the_lake_may_not_keep_is_not_pushed_again(
    tmp_path: Path, then: Payloads
) -> None:
    batches = in_two_parts(("put", '{"secret":0x1}'), ("done", '{"secret":3}'))
    write_all(tmp_path / "lake", ListSource(batches[:1]))
    write_all(tmp_path / "lake", ListSource(batches), payloads=then)
    chosen = choose(tmp_path / "lake", Filter(kind="klass"))
    assert [each.jid for each in jobs(chosen)] == ["same"]
    assert (chosen.bare, chosen.named) == (2, ["put", "done"])


def test_a_later_payload_is_what_its_own_row_says(tmp_path: Path) -> None:
    """qless takes numbers that JSON does not have, and a load does not: such a payload goes as it is."""
    write_all(tmp_path / "lake", ListSource(in_two_parts(("put", '{"n":0x1f}'), ("done", '{"n":0x2f}'))))
    found = {each.jid: (each.form, each.payload) for each in jobs(choose(tmp_path / "lake", Filter(kind="klass")))}
    assert found == {
        "put": ("raw", b'{"n":0x1f}'),
        "done": ("raw", b'{"n":0x2f}'),
        "same": ("json", b'{"first":1}'),
    }


def in_two_parts(*later: tuple[str, str]) -> list[bytes]:
    """Three jobs are put; then one of them is put anew with other data, and one completed with other data."""
    (anew, first), (done, second) = later
    all_protocols = AllProtocols()
    peer = all_protocols.qless()
    for jid in (anew, done, "same"):
        peer.call("put", peer.name, "q", jid, "klass", '{"first":1}', "0")
        all_protocols.dispatcher.advance(1)
    cut = len(all_protocols.dispatcher.events)
    peer.call("put", peer.name, "other", anew, "klass", first, "0")
    got = peer.fetch("q")
    assert got is not None and got.ident == done
    peer.call("complete", done, peer.name, "q", second)
    parts = all_protocols.dispatcher.events[:cut], all_protocols.dispatcher.events[cut:]
    return [encode_entry(JournalEntry(EVENT_VERSION, 0.0, 0.0, list(part))) for part in parts]


def test_a_lake_that_is_not_whole(past: tuple[Path, Bench]) -> None:
    look(past[0]).segments[1].path.unlink()
    with pytest.raises(LakeNotWhole, match="put the others back"):
        choose(past[0], Filter(queue="mail"))


def test_no_lake(tmp_path: Path) -> None:
    assert len(choose(tmp_path / "none", Filter(queue="mail")).numbers) == 0


def test_a_replay_says_what_it_repeats(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Enqueue("crossdock", [replace(spec("again"), extra=Extra(replayed_from="first"))]))
    lake = Lake(tmp_path / "lake")
    lake.add(decode_entry(bench.batches[0]).events)
    lake.close()
    [segment] = look(tmp_path / "lake").segments
    assert pq.read_table(segment.path, columns=["jid", "replayed_from"]).to_pylist() == [
        {"jid": "again", "replayed_from": "first"}
    ]

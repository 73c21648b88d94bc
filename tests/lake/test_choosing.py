"""Selection of jobs from history for a replay."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from crossdock.lake.event_rows import tables
from crossdock.lake.query import Filter, LakeNotWhole, choose, has, jobs
from crossdock.lake.redaction import Payloads
from crossdock.lake.table import Lake as Opened
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


#: The jobs that are ready are selected, too.
ALSO_ALIVE = ("alive",)


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
def test_a_filter_selects_jobs(past: tuple[Path, Bench], which: Filter, found: list[str]) -> None:
    chosen = choose(past[0], which, include=ALSO_ALIVE)
    assert [each.jid for each in jobs(chosen)] == found
    assert (len(chosen.numbers), chosen.unknown, chosen.bare) == (len(found), 0, 0)
    assert [each.jid for each in jobs(chosen, 1)] == found[:1]


def test_has_finds_names_in_the_history(past: tuple[Path, Bench]) -> None:
    folder, _ = past
    assert [has(folder, "queue", name) for name in ("mail", "moves", "nope")] == [True, True, False]
    assert [has(folder, "error_group", name) for name in ("Group", "mail")] == [True, False]


def test_a_filter_selects_by_time(past: tuple[Path, Bench]) -> None:
    folder, bench = past
    middle = bench.now.wall - DAY / 2
    assert [each.jid for each in jobs(choose(folder, Filter(since=middle), include=ALSO_ALIVE))] == ["late"]
    assert "late" not in [each.jid for each in jobs(choose(folder, Filter(until=middle)))]


def test_a_selected_job_has_all_its_fields(past: tuple[Path, Bench]) -> None:
    good, *_ = jobs(choose(past[0], Filter(queue="mail")))
    assert good[1:] == ("good", "mail", "kind", 3.0, 25, None, "json", b"[]", b'{"c":1}', ["red"])
    [put] = jobs(choose(past[0], Filter(kind="klass"), include=ALSO_ALIVE))
    assert put.payload == b'{"a":2}'


@pytest.mark.parametrize("then", [Payloads("hash"), Payloads("none"), Payloads("full", ["secret"])])
def test_a_job_whose_newest_payload_is_not_in_the_lake_is_not_pushed_again(tmp_path: Path, then: Payloads) -> None:
    batches = in_two_parts(("put", '{"secret":0x1}'), ("done", '{"secret":3}'))
    write_all(tmp_path / "lake", ListSource(batches[:1]))
    write_all(tmp_path / "lake", ListSource(batches), payloads=then)
    chosen = choose(tmp_path / "lake", Filter(kind="klass"), include=ALSO_ALIVE)
    assert [each.jid for each in jobs(chosen)] == ["same"]
    assert (chosen.bare, chosen.named) == (2, ["put", "done"])


def test_a_replaced_payload_has_the_form_of_its_own_row(tmp_path: Path) -> None:
    """qless accepts numbers that are not JSON, and a bulk load does not. Such a payload is pushed as raw bytes."""
    write_all(tmp_path / "lake", ListSource(in_two_parts(("put", '{"n":0x1f}'), ("done", '{"n":0x2f}'))))
    found = {
        each.jid: (each.form, each.payload)
        for each in jobs(choose(tmp_path / "lake", Filter(kind="klass"), include=ALSO_ALIVE))
    }
    assert found == {
        "put": ("raw", b'{"n":0x1f}'),
        "done": ("raw", b'{"n":0x2f}'),
        "same": ("json", b'{"first":1}'),
    }


def in_two_parts(*later: tuple[str, str]) -> list[bytes]:
    """Two entries: three jobs are put; then one is put again and one is completed, both with other data."""
    (renewed, first), (done, second) = later
    all_protocols = AllProtocols()
    peer = all_protocols.qless()
    for jid in (renewed, done, "same"):
        peer.call("put", peer.name, "q", jid, "klass", '{"first":1}', "0")
        all_protocols.dispatcher.advance(1)
    cut = len(all_protocols.dispatcher.events)
    peer.call("put", peer.name, "other", renewed, "klass", first, "0")
    got = peer.fetch("q")
    assert got is not None and got.ident == done
    peer.call("complete", done, peer.name, "q", second)
    parts = all_protocols.dispatcher.events[:cut], all_protocols.dispatcher.events[cut:]
    return [encode_entry(JournalEntry(EVENT_VERSION, 0.0, 0.0, list(part))) for part in parts]


def test_payloads_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment of 120 row groups of 1 MiB. The payloads of some jobs are replaced later. How many row groups are
    decoded ahead depends on the machine's load, and it is never half of them."""
    monkeypatch.setattr(tables, "_CUT_BYTES", 1 << 20)
    bench = Bench()
    bench.do(c.Start())
    for n in range(1_200):
        body = b'"%s"' % (b"%04d" % n * 26_250)
        bench.do(m.Put("qless", 1.0, "w", f"job-{n}", "q", "klass", body, Form.JSON))
    for n in range(0, 1_200, 200):
        bench.do(m.Put("qless", 2.0, "w", f"job-{n}", "q", "klass", b'"new"', Form.JSON))
    write_all(tmp_path / "lake", ListSource(bench.batches), 2_000)
    [segment] = Opened.open(tmp_path / "lake").files()
    assert pq.read_metadata(tmp_path / "lake" / segment.path).num_row_groups >= 100
    sizes, held, before = [], 0, pa.total_allocated_bytes()
    for past in jobs(choose(tmp_path / "lake", Filter(), include=ALSO_ALIVE)):
        sizes.append(len(past.payload or b""))
        held = max(held, pa.total_allocated_bytes() - before)
    assert (len(sizes), sizes.count(5), sum(sizes) > 120e6) == (1_200, 6, True)
    assert 0 < held < 60 * (1 << 20)


def test_an_incomplete_lake_is_refused(past: tuple[Path, Bench]) -> None:
    (past[0] / Opened.open(past[0]).files()[1].path).unlink()
    with pytest.raises(LakeNotWhole, match="is missing; restore it from a copy"):
        choose(past[0], Filter(queue="mail"))


def test_without_a_lake_no_job_is_selected(tmp_path: Path) -> None:
    assert len(choose(tmp_path / "none", Filter(queue="mail")).numbers) == 0


def test_a_replayed_job_names_the_original(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Enqueue("crossdock", [replace(spec("again"), extra=Extra(replayed_from="first"))]))
    lake = Lake(tmp_path / "lake")
    lake.add(decode_entry(bench.batches[0]).events)
    lake.close()
    [segment] = (tmp_path / "lake").glob("date=*/*.parquet")
    assert pq.read_table(segment, columns=["jid", "replayed_from"]).to_pylist() == [
        {"jid": "again", "replayed_from": "first"}
    ]

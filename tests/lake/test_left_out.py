"""A replay leaves out jobs that are alive, have succeeded since, or were replayed before."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.lake.job_outcomes import Ask, LeftOut
from crossdock.lake.query import OUTCOMES, Chosen, Filter, choose, jobs, mark
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.events import Failed
from crossdock.model.job import Extra, Form, Number, Spec
from crossdock.model.states import OVER
from tests.lake.source import ListSource, Row, rows_in, write_all
from tests.model.bench import RULES, Bench, spec
from tests.model.resqu_simulation import ResquWorld
from tests.model.simulation import World
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad

FINAL = replace(RULES, max_failures=-1)
RETRY_S = 10_000.0


def test_reasons_to_leave_a_job_out(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Start())
    bench.push("mended", "retrying", policy=RULES)
    fail(bench, "mended", "retrying")
    bench.after(RETRY_S)
    assert bench.lease().jid == "mended"
    bench.succeed("mended")
    assert bench.lease().jid == "retrying"
    bench.fail("retrying")
    bench.push("dead", "revived", policy=FINAL)
    fail(bench, "dead", "revived")
    bench.do(admin.Requeue("admin", [number_of(bench, "revived")]))
    lake = written(tmp_path, bench)
    chosen = choose(lake, Filter(outcome="failed"))
    assert (jids(chosen), chosen.left_out) == (["dead"], LeftOut(succeeded=1, alive=2))
    chosen = choose(lake, Filter(outcome="dead"))
    assert (jids(chosen), chosen.left_out) == (["dead"], LeftOut(alive=1))
    assert jids(choose(lake, Filter(outcome="failed"), include=["succeeded"])) == ["mended", "dead"]
    assert jids(choose(lake, Filter(outcome="failed"), include=["alive"])) == ["retrying", "dead", "revived"]
    assert len(jids(choose(lake, Filter(outcome="failed"), include=LeftOut._fields))) == 4


def test_jobs_selected_as_pushed_or_succeeded_are_left_out_only_while_they_are_alive(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Start())
    bench.push("done", "waiting")
    bench.lease()
    bench.succeed("done")
    lake = written(tmp_path, bench)
    for outcome, left_out in (("pushed", LeftOut(alive=1)), ("succeeded", LeftOut())):
        chosen = choose(lake, Filter(outcome=outcome))
        assert (jids(chosen), chosen.left_out) == (["done"], left_out)


def test_a_success_before_the_last_failure_does_not_count(tmp_path: Path) -> None:
    """A qless job is completed, put again, and then fails for good."""
    load = MixedLoad(1)
    peer = load.qless
    jid = peer.push("q", {})
    peer.fetch("q")
    peer.succeed(jid)
    load.all_protocols.dispatcher.advance(5)
    peer.call("put", peer.name, "q", jid, "Q", "{}", 0)
    peer.fetch("q")
    peer.call("fail", jid, peer.name, "group", "it did not work")
    lake = Lake(tmp_path / "lake")
    lake.add(load.events)
    lake.close()
    chosen = choose(tmp_path / "lake", Filter(outcome="failed"))
    assert (jids(chosen), chosen.left_out) == ([jid], LeftOut())


def test_a_job_that_goes_on_to_another_queue_has_succeeded_in_the_first(tmp_path: Path) -> None:
    load = MixedLoad(1)
    peer = load.qless
    jid = peer.push("q", {})
    peer.fetch("q")
    peer.fail(jid)
    load.all_protocols.dispatcher.advance(5)
    peer.fetch("q")
    peer.call("complete", jid, peer.name, "q", "{}", "next", "other")
    peer.fetch("other")
    peer.call("fail", jid, peer.name, "group", "it did not work")
    lake = Lake(tmp_path / "lake")
    lake.add(load.events)
    lake.close()
    lost = Filter(outcome="failed", queue="q")
    assert choose(tmp_path / "lake", lost).left_out == LeftOut(succeeded=1)
    assert jids(choose(tmp_path / "lake", lost._replace(queue="other"))) == [jid]


def test_flushed_jobs_are_not_alive(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Start())
    bench.push("flushed")
    fail(bench, "flushed")
    bench.do(admin.Flush("faktory"))
    bench.push("later")
    fail(bench, "later")
    chosen = choose(written(tmp_path, bench), Filter(outcome="failed"))
    assert (jids(chosen), chosen.left_out) == (["flushed"], LeftOut(alive=1))


def test_a_job_is_replayed_once_by_several_replays(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Start())
    bench.push("first", "second", policy=FINAL)
    fail(bench, "first", "second")
    lake = written(tmp_path, bench)
    name = choose(lake, Filter(outcome="dead")).lake
    copy = mark("one", name) + "copy"
    bench.do(c.Enqueue("crossdock", [replace(spec(copy, policy=FINAL), extra=Extra(replayed_from="first"))]))
    fail(bench, copy)
    write_all(lake, ListSource(bench.batches))
    chosen = choose(lake, Filter(outcome="dead"), run="two")
    assert (jids(chosen), chosen.left_out) == (["second", copy], LeftOut(replayed=1))
    assert jids(choose(lake, Filter(outcome="dead"), run="two", include=["replayed"])) == ["first", "second", copy]
    continued = choose(lake, Filter(outcome="dead"), run="one")
    assert (jids(continued), continued.left_out) == (["first", "second"], LeftOut())


def test_the_running_server_knows_more_than_the_lake(tmp_path: Path) -> None:
    """Since the newest event in the lake, jobs were retried, completed and removed."""
    bench = Bench()
    bench.do(c.Start())
    names = ("dead", "retried", "purged", "died", "complete", "ended", "gone")
    bench.push(*names, policy=FINAL)
    for jid in names:
        bench.lease()
        if jid in ("dead", "retried", "purged"):
            bench.fail(jid)
        elif jid == "gone":
            bench.fail(jid)
            bench.do(admin.Remove("admin", "discarded", [number_of(bench, jid)], frozenset(OVER)))
    lake = written(tmp_path, bench)
    told = {1: "dead", 2: "ready", 4: "failed", 5: "complete"}
    asked: list[int] = []

    def ask(numbers: list[int]) -> list[str | None]:
        asked.extend(numbers)
        return [told.get(number) for number in numbers]

    chosen = choose(lake, Filter(outcome="failed"), ask=ask)
    assert (jids(chosen), chosen.left_out) == (["dead", "gone"], LeftOut(alive=1, unclear=1))
    assert asked == [1, 2, 3]
    chosen = choose(lake, Filter(), ask=ask)
    assert (jids(chosen), chosen.left_out) == (
        ["dead", "purged", "died", "complete", "ended", "gone"],
        LeftOut(alive=1),
    )


def test_a_job_that_succeeded_and_is_alive_again_is_alive(tmp_path: Path) -> None:
    load = MixedLoad(1)
    peer = load.qless
    jid = peer.push("q", {})
    peer.fetch("q")
    peer.fail(jid)
    peer.fetch("q")
    peer.succeed(jid)
    load.all_protocols.dispatcher.advance(5)
    peer.call("put", peer.name, "q", jid, "Q", "{}", 0)
    lake = Lake(tmp_path / "lake")
    lake.add(load.events)
    lake.close()
    asks: list[Ask] = [lambda numbers: None, lambda numbers: ["ready"] * len(numbers)]
    for ask in asks:
        chosen = choose(tmp_path / "lake", Filter(outcome="failed"), include=["succeeded"], ask=ask)
        assert chosen.left_out == LeftOut(alive=1)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, MixedLoad]]:
    """A mixed load of all protocols in many segments, with jobs of all kinds and replays. Some jobs were pushed before
    the lake begins."""
    folder, load = tmp_path_factory.mktemp("mixed") / "lake", MixedLoad(11)
    load.go(120)
    early = len(load.events) // 4
    dispatcher = load.all_protocols.dispatcher
    for jid, payload, form in (
        ("raw", b"\xff\x00", Form.RAW),
        ("none", b"", Form.NONE),
        ("bare", b'"[redacted]"', Form.JSON),
    ):
        extra = Extra(b'{"c":1}', tags=("red", "blue"))
        dispatcher.do(c.Enqueue("workq", [Spec(jid, "mail", "k", payload, form, 0.5, RULES, 0.0, extra)]))
    load.go(400)
    failed = [event.jid for event in load.events if isinstance(event, Failed)]
    for n, jid in enumerate(failed[::3]):
        again = Spec(f"copy-{n}", "mail", "k", b"[]", Form.JSON, 0, RULES, 0.0, Extra(replayed_from=jid))
        dispatcher.do(c.Enqueue("crossdock", [again]))
    load.go(400)
    lake = Lake(folder)
    lake.cut(load.events[early:], 150)
    yield folder, load
    lake.close()


FILTERS = [
    *(Filter(outcome=outcome) for outcome in OUTCOMES),
    *(Filter(outcome=outcome, queue="mail") for outcome in OUTCOMES),
    Filter(queue="mail", kind="k"),
    Filter(tag="red"),
    Filter(outcome="failed", group="group-1"),
    Filter(jid="none such"),
]


def test_the_choice_is_that_of_a_plain_computation(mixed: tuple[Path, MixedLoad]) -> None:
    folder, _ = mixed
    rows = all_rows(folder)
    middle = rows[len(rows) // 2]["at"]
    totals = LeftOut()
    for which in (*FILTERS, *(Filter(outcome=each, until=middle) for each in OUTCOMES), Filter(since=middle)):
        expected, chosen = computed(rows, which), choose(folder, which)
        assert chosen.left_out == LeftOut(**expected.left_out), which
        assert sorted(jids(chosen)) == sorted(expected.jids), which
        assert (chosen.unknown, chosen.bare) == (expected.unknown, expected.bare), which
        totals = LeftOut(*map(sum, zip(totals, chosen.left_out, strict=True)))
    assert min(totals[:3]) > 10, totals


def test_jobs_are_alive_in_the_lake_if_they_are_in_the_engine(mixed: tuple[Path, MixedLoad]) -> None:
    folder, load = mixed
    alive = {number for number, job in load.all_protocols.dispatcher.state.jobs.items() if job.state not in OVER}
    without = choose(folder, Filter())
    kept = set(without.numbers.to_pylist())
    everything = set(choose(folder, Filter(), include=["alive"]).numbers.to_pylist())
    assert len(alive) > 10
    assert everything - kept == everything & alive


@pytest.mark.parametrize("world", [World, ResquWorld])
@pytest.mark.parametrize("seed", range(1, 4))
def test_simulations_with_power_cuts(tmp_path: Path, world: type[World], seed: int) -> None:
    simulated = world(seed, tmp_path)
    simulated.run(1_000)
    state = EngineState()
    for event in simulated.log:
        apply(state, event)
    lake = Lake(tmp_path / "lake")
    lake.cut(simulated.log, 400)
    lake.close()
    rows = all_rows(tmp_path / "lake")
    for which in (Filter(outcome=outcome) for outcome in OUTCOMES):
        expected, chosen = computed(rows, which), choose(tmp_path / "lake", which)
        assert chosen.left_out == LeftOut(**expected.left_out), which
        assert sorted(jids(chosen)) == sorted(expected.jids), which
    alive = sum(job.state not in OVER for job in state.jobs.values())
    assert choose(tmp_path / "lake", Filter()).left_out == LeftOut(alive=alive)


@dataclass
class Computed:
    jids: list[str] = field(default_factory=list)
    unknown: int = 0
    bare: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def computed(rows: list[Row], which: Filter) -> Computed:
    """The choice, job by job."""
    found = Computed()
    by_number: dict[int, list[Row]] = {}
    for row in rows:
        if row["number"] is not None:
            by_number.setdefault(row["number"], []).append(row)
    for history in by_number.values():
        matching = [at for at, row in enumerate(history) if matches(row, which)]
        if not matching:
            continue
        later = history[matching[-1] + 1 :]
        pushed = history[0] if history[0]["event"] == "pushed" else None
        if pushed is not None and which.tag and which.tag not in (pushed["tags"] or ()):
            continue
        why = reason(
            rows, history, later, history[matching[-1]]["seq"], mends=which.outcome not in ("pushed", "succeeded")
        )
        if why:
            found.left_out[why] = found.left_out.get(why, 0) + 1
        elif pushed is None:
            found.unknown += 1
        elif b"[redacted]" in (pushed["payload"] or b""):
            found.bare += 1
        else:
            found.jids.append(pushed["jid"])
    return found


def reason(rows: list[Row], history: list[Row], later: list[Row], seq: int, *, mends: bool) -> str:
    states = [row["state"] for row in history if row["state"] is not None]
    if mends and any(succeeds(row) for row in later):
        return "succeeded"
    flushed = max((row["seq"] for row in rows if row["event"] == "flushed"), default=0)
    last = max(row["seq"] for row in history)
    if states and states[-1] not in ("complete", "failed", "dead", "gone") and last > flushed:
        return "alive"
    jid = history[0]["jid"] if history[0]["event"] == "pushed" else None
    replays = (row for row in rows if row["replayed_from"] is not None and row["replayed_from"] == jid)
    return "replayed" if mends and any(row["seq"] > seq for row in replays) else ""


def succeeds(row: Row) -> bool:
    return row["event"] in ("succeeded", "advanced") or (row["event"], row["outcome"]) == ("rescheduled", "succeeded")


def matches(row: Row, which: Filter) -> bool:
    event, state = row["event"], row["state"]
    outcome = {
        "failed": event == "failed" or (event, row["outcome"]) == ("rescheduled", "failed"),
        "lost": event == "lease-expired" or bool(event == "failed" and row["lost"]),
        "dead": event == "buried" or (event == "failed" and state in ("dead", "failed", "gone")),
    }.get(which.outcome, event == which.outcome)
    named = ((which.queue, "queue"), (which.kind, "kind"), (which.group, "error_group"), (which.jid, "jid"))
    return (
        outcome
        and all(not value or row[name] == value for value, name in named)
        and (which.since is None or row["at"] >= which.since)
        and (which.until is None or row["at"] < which.until)
    )


def all_rows(folder: Path) -> list[Row]:
    return [row for _, row in sorted(rows_in(folder).items())]


def fail(bench: Bench, *names: str) -> None:
    for jid in names:
        bench.lease()
        assert bench.fail(jid)


def number_of(bench: Bench, jid: str) -> Number:
    return next(number for number, job in bench.state.jobs.items() if job.jid == jid)


def written(folder: Path, bench: Bench) -> Path:
    write_all(folder / "lake", ListSource(bench.batches))
    return folder / "lake"


def jids(chosen: Chosen) -> list[str]:
    return [each.jid for each in jobs(chosen)]

"""Bulk loads: each job of a run is enqueued once, however often it is sent."""

import pytest

from crossdock.engine.index import bulk_loads as kept
from crossdock.engine.records import bulk_load
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.bulk import IDLE_S, ONCE_S, CloseLoad, Loaded, LoadJobs, LoadRefusal, digest
from tests.model.bench import Bench, spec
from tests.support.picture import picture


def load(bench: Bench, *jids: str, run: str = "run", once: bool = False) -> Loaded:
    return bench.do(LoadJobs("crossdock", run, [spec(jid) for jid in jids], once))


def test_a_jid_is_enqueued_once_per_run(bench: Bench) -> None:
    assert load(bench, "one", "two") == Loaded(2, 0, 2, 0)
    assert load(bench, "two", "three") == Loaded(1, 1, 3, 1)
    assert bench.work_order() == ["one", "two", "three"]


def test_of_two_jobs_of_one_jid_in_a_call_one_is_enqueued(bench: Bench) -> None:
    assert load(bench, "one", "one", "two", "one") == Loaded(2, 2, 2, 2)
    assert bench.work_order() == ["one", "two"]


def test_a_jid_is_enqueued_once_even_if_its_job_has_ended(bench: Bench) -> None:
    load(bench, "one")
    bench.lease()
    assert bench.succeed("one")
    assert load(bench, "one") == Loaded(0, 1, 1, 1)
    assert bench.nothing_to_lease()


def test_another_run_adds_its_own_jobs(bench: Bench) -> None:
    load(bench, "one")
    assert load(bench, "one", run="other") == Loaded(1, 0, 1, 0)
    assert bench.work_order() == ["one", "one"]


def test_a_once_load_adds_no_job_that_another_run_added(bench: Bench) -> None:
    bench.push("pushed")
    assert load(bench, "one", "two", "pushed", run="a", once=True) == Loaded(2, 1, 2, 1)
    bench.do(CloseLoad("a"))
    bench.lease()
    assert bench.succeed("pushed")
    bench.lease()
    assert bench.succeed("one")
    assert load(bench, "one", "two", "three", run="b", once=True) == Loaded(1, 2, 1, 2)
    assert bench.work_order() == ["two", "three"]
    assert load(bench, "pushed", run="c", once=True).new == 1, "over, and no such load had brought it"
    assert load(bench, "one", "two", run="named") == Loaded(2, 0, 2, 0), "a run by itself asks for its own"


def test_jids_of_once_loads_are_remembered_for_a_time_and_up_to_a_number(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def over(*jids: str) -> None:
        for jid in jids:
            bench.lease()
            assert bench.succeed(jid)

    load(bench, "one", run="a", once=True)
    over("one")
    bench.after(ONCE_S - 10)
    assert load(bench, "one", run="b", once=True).new == 0
    bench.after(20)
    assert load(bench, "one", run="c", once=True).new == 1
    over("one")
    assert load(bench, "one", run="d", once=True).new == 0
    monkeypatch.setattr(kept, "ONCE_AT_MOST", 2)
    load(bench, "two", "three", run="e", once=True)
    over("two", "three")
    assert load(bench, "one", "two", "three", run="f", once=True) == Loaded(1, 2, 1, 2)


def test_a_call_without_jobs_opens_a_load(bench: Bench) -> None:
    assert load(bench) == Loaded(0, 0, 0, 0)
    assert list(bench.state.loads.by_run) == ["run"]


def test_a_closed_load_accepts_no_jobs_and_keeps_its_totals(bench: Bench) -> None:
    load(bench, "one", "one", "two")
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 2, 1)
    assert load(bench, "three") == Loaded(0, 0, 2, 1, LoadRefusal.CLOSED)
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 2, 1)
    assert bench.state.loads.jids == 0
    assert bench.work_order() == ["one", "two"]


def test_closing_an_unknown_run_creates_a_closed_load(bench: Bench) -> None:
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 0, 0)
    assert load(bench, "one") == Loaded(0, 0, 0, 0, LoadRefusal.CLOSED)


def test_an_idle_load_is_closed_by_the_timer(bench: Bench) -> None:
    load(bench, "one")
    bench.after(IDLE_S - 10)
    assert load(bench, "two").new == 1
    bench.after(IDLE_S - 10)
    assert load(bench, "three").new == 1
    bench.after(IDLE_S + 1)
    assert load(bench, "four").refused is LoadRefusal.LAPSED, "it was closed before it was complete"


def test_the_number_of_open_loads_is_limited(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "OPEN_AT_MOST", 2)
    load(bench, "one", run="a")
    load(bench, "one", run="b")
    assert load(bench, "one", run="c").refused is LoadRefusal.TOO_MANY_OPEN
    assert load(bench, "two", run="a").new == 1
    bench.do(CloseLoad("a"))
    assert load(bench, "one", run="c").new == 1


def test_the_number_of_remembered_jids_is_limited(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "JIDS_AT_MOST", 3)
    load(bench, "one", "two", run="a")
    assert load(bench, "one", "two", run="b") == Loaded(0, 0, 0, 0, LoadRefusal.TOO_MANY_JIDS)
    assert load(bench, "two", "three", run="a") == Loaded(1, 1, 3, 1)
    bench.do(CloseLoad("a"))
    assert load(bench, "one", "two", run="b").new == 2


def test_the_oldest_closed_loads_are_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "CLOSED_AT_MOST", 2)
    load(bench, "one", run="c")
    for run in "abc":
        bench.do(CloseLoad(run))
    assert load(bench, "one", run="c").refused is LoadRefusal.CLOSED
    assert list(bench.state.loads.by_run) == ["b", "c"]


def test_a_flush_forgets_loads(bench: Bench) -> None:
    load(bench, "one", once=True)
    bench.do(Flush("faktory"))
    assert load(bench, "one", once=True) == Loaded(1, 0, 1, 0)


def test_loads_survive_a_restart(bench: Bench) -> None:
    load(bench, "one", "two")
    load(bench, "one", run="closed")
    load(bench, "by jid", run="closed", once=True)
    bench.do(CloseLoad("closed"))
    before = picture(bench.state)
    bench.restart()
    assert picture(bench.state)["loads"] == before["loads"]
    assert load(bench, "two", "three") == Loaded(1, 1, 3, 1)


@pytest.mark.parametrize("jid", ["a" * 32, "A" * 32, "aA" * 16, " " + "a" * 31, "a" * 31, "z" * 32, "0 " * 16])
def test_different_jids_have_different_digests(jid: str) -> None:
    others = {jid.lower(), jid.upper(), jid.strip(), jid.replace(" ", ""), jid + "a"} - {jid}
    assert len(digest(jid)) == 16
    assert digest(jid) not in {digest(other) for other in others}

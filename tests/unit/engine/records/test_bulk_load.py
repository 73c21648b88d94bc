"""Loads: each job of a run goes in once, however often it is brought."""

import pytest

from crossdock.engine.index import bulk_loads as kept
from crossdock.engine.records import bulk_load
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.bulk import IDLE_S, ONCE_S, CloseLoad, Loaded, LoadJobs, LoadRefusal, digest
from tests.model.bench import Bench, spec
from tests.support.picture import picture


def load(bench: Bench, *jids: str, run: str = "run", once: bool = False) -> Loaded:
    return bench.do(LoadJobs("crossdock", run, [spec(jid) for jid in jids], once))


def test_a_jid_goes_in_once(bench: Bench) -> None:
    assert load(bench, "one", "two") == Loaded(2, 0, 2, 0)
    assert load(bench, "two", "three") == Loaded(1, 1, 3, 1)
    assert bench.work_order() == ["one", "two", "three"]


def test_two_of_one_jid_in_one_call(bench: Bench) -> None:
    assert load(bench, "one", "one", "two", "one") == Loaded(2, 2, 2, 2)
    assert bench.work_order() == ["one", "two"]


def test_whether_or_not_the_job_is_still_alive(bench: Bench) -> None:
    load(bench, "one")
    bench.lease()
    assert bench.succeed("one")
    assert load(bench, "one") == Loaded(0, 1, 1, 1)
    assert bench.nothing_to_lease()


def test_another_run_adds_its_own_jobs(bench: Bench) -> None:
    load(bench, "one")
    assert load(bench, "one", run="other") == Loaded(1, 0, 1, 0)
    assert bench.work_order() == ["one", "one"]


def test_by_jid_alone_another_run_adds_no_known_job(bench: Bench) -> None:
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


def test_what_came_by_jid_alone_is_remembered_for_a_time_and_the_newest_of_it(
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


def test_nothing_opens_a_load(bench: Bench) -> None:
    assert load(bench) == Loaded(0, 0, 0, 0)
    assert list(bench.state.loads.by_run) == ["run"]


def test_a_closed_one_takes_nothing_and_knows_its_totals(bench: Bench) -> None:
    load(bench, "one", "one", "two")
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 2, 1)
    assert load(bench, "three") == Loaded(0, 0, 2, 1, LoadRefusal.CLOSED)
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 2, 1)
    assert bench.state.loads.jids == 0
    assert bench.work_order() == ["one", "two"]


def test_one_that_never_was_is_closed_from_the_beginning(bench: Bench) -> None:
    assert bench.do(CloseLoad("run")) == Loaded(0, 0, 0, 0)
    assert load(bench, "one") == Loaded(0, 0, 0, 0, LoadRefusal.CLOSED)


def test_an_idle_one_is_closed_by_time(bench: Bench) -> None:
    load(bench, "one")
    bench.after(IDLE_S - 10)
    assert load(bench, "two").new == 1
    bench.after(IDLE_S - 10)
    assert load(bench, "three").new == 1
    bench.after(IDLE_S + 1)
    assert load(bench, "four").refused is LoadRefusal.LAPSED, "not all of it may have come"


def test_no_more_than_so_many_are_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "OPEN_AT_MOST", 2)
    load(bench, "one", run="a")
    load(bench, "one", run="b")
    assert load(bench, "one", run="c").refused is LoadRefusal.TOO_MANY_OPEN
    assert load(bench, "two", run="a").new == 1
    bench.do(CloseLoad("a"))
    assert load(bench, "one", run="c").new == 1


def test_nor_more_than_so_many_jids(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "JIDS_AT_MOST", 3)
    load(bench, "one", "two", run="a")
    assert load(bench, "one", "two", run="b") == Loaded(0, 0, 0, 0, LoadRefusal.TOO_MANY_JIDS)
    assert load(bench, "two", "three", run="a") == Loaded(1, 1, 3, 1)
    bench.do(CloseLoad("a"))
    assert load(bench, "one", "two", run="b").new == 2


def test_the_oldest_of_the_closed_are_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "CLOSED_AT_MOST", 2)
    load(bench, "one", run="c")
    for run in "abc":
        bench.do(CloseLoad(run))
    assert load(bench, "one", run="c").refused is LoadRefusal.CLOSED
    assert list(bench.state.loads.by_run) == ["b", "c"]


def test_a_flush_forgets_them(bench: Bench) -> None:
    load(bench, "one", once=True)
    bench.do(Flush("faktory"))
    assert load(bench, "one", once=True) == Loaded(1, 0, 1, 0)


def test_all_of_it_outlives_a_restart(bench: Bench) -> None:
    load(bench, "one", "two")
    load(bench, "one", run="closed")
    load(bench, "by jid", run="closed", once=True)
    bench.do(CloseLoad("closed"))
    before = picture(bench.state)
    bench.restart()
    assert picture(bench.state)["loads"] == before["loads"]
    assert load(bench, "two", "three") == Loaded(1, 1, 3, 1)


@pytest.mark.parametrize("jid", ["a" * 32, "A" * 32, "aA" * 16, " " + "a" * 31, "a" * 31, "z" * 32, "0 " * 16])
def test_no_two_jids_have_one_digest(jid: str) -> None:
    others = {jid.lower(), jid.upper(), jid.strip(), jid.replace(" ", ""), jid + "a"} - {jid}
    assert len(digest(jid)) == 16
    assert digest(jid) not in {digest(other) for other in others}

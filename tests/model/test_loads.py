"""Bulk loads compared with a small reference: random loads, jids, closings, timeouts, restarts and snapshots."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random

import pytest

from crossdock.engine.index import bulk_loads
from crossdock.engine.index.job_table import JidIndex
from crossdock.engine.records import bulk_load
from crossdock.journal.snapshot import file
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.bulk import IDLE_S, ONCE_S, CloseLoad, Loaded, LoadJobs, LoadRefusal
from tests.model.bench import Bench, spec
from tests.support.picture import picture

OPEN, JIDS, CLOSED, ONCE = 4, 60, 5, 20


@dataclass
class Run:
    jids: set[str] = field(default_factory=set)
    new: int = 0
    known: int = 0
    end: float = 0.0
    lapsed: bool = False

    def totals(self, refused: LoadRefusal | None = None) -> Loaded:
        return Loaded(0, 0, self.new, self.known, refused)


class Reference:
    """The rules of bulk loads, written as simply as possible."""

    def __init__(self) -> None:
        self.open: dict[str, Run] = {}
        self.closed: dict[str, Run] = {}
        self.pushed: list[str] = []
        self.once: dict[str, float] = {}

    def load(self, name: str, jids: list[str], once: bool, live: JidIndex, now: Now) -> Loaded:
        if name in self.closed:
            return self.closed[name].totals(LoadRefusal.LAPSED if self.closed[name].lapsed else LoadRefusal.CLOSED)
        if name not in self.open and len(self.open) >= OPEN:
            return Loaded(0, 0, 0, 0, LoadRefusal.TOO_MANY_OPEN)
        run = self.open.get(name, Run())
        fresh = [jid for jid in dict.fromkeys(jids) if jid not in run.jids]
        if once:
            fresh = [jid for jid in fresh if jid not in live and self.once.get(jid, -inf) + ONCE_S <= now.wall]
        if sum(len(each.jids) for each in self.open.values()) + len(fresh) > JIDS:
            return run.totals(LoadRefusal.TOO_MANY_JIDS)
        self.open[name] = run
        run.jids.update(fresh)
        run.new += len(fresh)
        run.known += len(jids) - len(fresh)
        run.end = now.steady + IDLE_S
        self.pushed += fresh
        if once:
            for jid in fresh:
                self.once.pop(jid, None)
                self.once[jid] = now.wall
            self.once = dict(list(self.once.items())[-ONCE:])
        return Loaded(len(fresh), len(jids) - len(fresh), run.new, run.known)

    def close(self, name: str, *, lapsed: bool = False) -> Loaded:
        if name not in self.closed:
            self.closed[name] = self.open.pop(name, Run())
            self.closed[name].lapsed = lapsed
        outcome = self.closed[name].totals()
        while len(self.closed) > CLOSED:
            del self.closed[next(iter(self.closed))]
        return outcome

    def time_is(self, steady: float) -> None:
        for _, name in sorted((run.end, name) for name, run in self.open.items() if run.end <= steady):
            self.close(name, lapsed=True)


@pytest.mark.parametrize("seed", range(8))
def test_engine_and_reference_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "OPEN_AT_MOST", OPEN)
    monkeypatch.setattr(bulk_load, "JIDS_AT_MOST", JIDS)
    monkeypatch.setattr(bulk_loads, "CLOSED_AT_MOST", CLOSED)
    monkeypatch.setattr(bulk_loads, "ONCE_AT_MOST", ONCE)
    random, bench, reference = Random(seed), Bench(), Reference()
    refused = set()
    for step in range(600):
        chance = random.random()
        name = f"run-{random.randrange(10)}"
        if chance < 0.75:
            jids = [f"jid-{random.randrange(40)}" for _ in range(random.randrange(12))]
            once = random.random() < 0.3
            expected = reference.load(name, jids, once, bench.state.jids, bench.now)
            outcome = bench.do(LoadJobs("crossdock", name, [spec(jid) for jid in jids], once))
            assert outcome == expected
            refused.add(outcome.refused)
        elif chance < 0.9:
            assert bench.do(CloseLoad(name)) == reference.close(name)
        elif chance < 0.94:
            bench.after(random.choice([1.0, IDLE_S / 3, IDLE_S + 1]))
            reference.time_is(bench.now.steady)
        elif chance < 0.95:
            bench.do(Flush("faktory"))
            reference.open, reference.closed, reference.pushed, reference.once = {}, {}, [], {}
        elif chance < 0.98:
            path = tmp_path / f"snapshot-{step}"
            file.write(path, bench.state, step, bench.now.wall, bench.now.steady)
            loaded = file.load(path).state
            assert picture(loaded) == picture(bench.state)
            assert list(loaded.loads.closed) == list(bench.state.loads.closed)
            assert list(loaded.loads.once) == list(bench.state.loads.once)
            bench.adopt(loaded)
        else:
            before = picture(bench.state)["loads"]
            bench.restart()
            assert picture(bench.state)["loads"] == before
    assert [bench.state.jobs[number].jid for number in sorted(bench.state.jobs)] == reference.pushed
    assert refused == {None, *LoadRefusal}

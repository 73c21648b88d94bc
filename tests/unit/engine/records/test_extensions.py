"""Records of Faktory's extensions: no decision writes state, and a replay gives the same state."""

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.model.commands import core as c
from crossdock.model.commands import extensions as x
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Links
from tests.model import invariants
from tests.model.bench import Bench, held, spec
from tests.model.story import story_of_extensions
from tests.support.frozen import freeze
from tests.support.picture import picture


def test_no_decision_changes_the_state() -> None:
    bench = Bench()
    freeze(bench.engine)
    story_of_extensions(bench)
    invariants.check(bench.state)


def test_a_replay_gives_the_same_state() -> None:
    bench = story_of_extensions(Bench())
    bench.after(3_700.0)
    state = EngineState()
    for batch in bench.batches:
        for event in decode_entry(batch).events:
            apply(state, event)
    assert picture(state) == picture(bench.state)


def test_a_push_while_the_clock_is_set_back() -> None:
    bench = Bench()
    bench.push("newest")
    before = bench.now.wall
    bench.clock.jump(-100.0)
    due = before - 50.0
    bench.do(x.EnqueueOnce("faktory", [spec("scheduled", due=due)]))
    bench.do(x.EnqueueOnce("faktory", [spec("ready")]))
    bench.do(x.EnqueueOnce("faktory", [spec("linked", links=Links(tracked=True)), spec("other")]))
    assert [job.state.name for job in bench.state.jobs.values()] == ["READY", "SCHEDULED", "READY", "READY", "READY"]
    invariants.check(bench.state)


def test_a_lease_that_was_given_back_is_lost() -> None:
    bench = Bench()
    bench.push("job")
    lease = held(bench.lease())
    claim = x.LeaseClaim("job", c.Claim("faktory", "w", lease))
    assert bench.do(x.ExtendLeases([claim], 60.0)) == []
    bench.give_back(lease)
    assert bench.do(x.ExtendLeases([claim], 60.0)) == ["job"]
    assert bench.do(x.Snooze("job", claim.claim, 5.0)) is c.Verdict.UNKNOWN

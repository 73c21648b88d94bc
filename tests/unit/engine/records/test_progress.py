"""Progress that workers report."""

import pytest

from crossdock.model.commands.admin import Requeue
from crossdock.model.commands.core import LeaseTerms, SetProgress
from crossdock.model.job import LeaseBinding, Links, Number
from crossdock.model.policies import Disposition, LeaseExpiry, Policy
from tests.model.bench import Bench, held

DAY = 86_400.0


def shown(bench: Bench, jid: str = "a") -> str | None:
    track = bench.state.progress.get(jid)
    return track.state if track else None


def test_progress_follows_its_job(bench: Bench) -> None:
    policy = Policy(1, exhausted=Disposition.DEAD)
    seen = [shown(bench)]
    bench.push("a", links=Links(tracked=True), policy=policy)
    seen.append(shown(bench))
    for _ in range(2):
        bench.lease()
        seen.append(shown(bench))
        bench.fail("a")
        seen.append(shown(bench))
        bench.tick()
    bench.do(Requeue("faktory", [Number(1)]))
    bench.lease()
    bench.succeed("a")
    seen.append(shown(bench))
    assert seen == [None, "enqueued", "working", "failed", "working", "dead", "success"]


@pytest.mark.parametrize("how", ["given back", "expired", "restarted"])
def test_progress_follows_a_job_that_returns_to_its_queue(bench: Bench, how: str) -> None:
    bench.push("a", links=Links(tracked=True), policy=Policy(1, lease_expiry=LeaseExpiry.RETURN))
    job = bench.lease(terms=LeaseTerms(60.0, 60.0, 60.0, LeaseBinding.CONNECTION))
    if how == "given back":
        bench.give_back(held(job))
    elif how == "expired":
        bench.after(60.0)
    else:
        bench.restart()
    assert shown(bench) == "enqueued"


def test_progress_is_kept_half_an_hour_after_its_last_change(bench: Bench) -> None:
    bench.push("a", links=Links(tracked=True))
    bench.clock.pass_by(1_000.0)
    bench.do(SetProgress("a", 50, None))
    bench.after(1_799.0)
    assert shown(bench) == "enqueued"
    assert bench.state.progress["a"].percent == 50
    bench.after(1.0)
    assert shown(bench) is None


def test_progress_is_forgotten_even_if_the_clock_was_set_back(bench: Bench) -> None:
    bench.push("dated by a wrong clock")
    bench.clock.jump(-DAY)
    bench.do(SetProgress("a", 50, None))
    bench.after(1_800.0)
    assert bench.state.progress == {}


def test_a_clock_set_forward_forgets_no_progress(bench: Bench) -> None:
    bench.push("a", links=Links(tracked=True))
    bench.clock.jump(DAY)
    bench.after(1_799.0)
    assert shown(bench) == "enqueued"
    bench.after(1.0)
    assert shown(bench) is None


def test_progress_outlives_the_lease(bench: Bench) -> None:
    """Both last 1,800 s: one tick ends both, and the failure is written into the progress."""
    bench.push("a", links=Links(tracked=True))
    bench.lease()
    bench.after(1_800.0)
    assert shown(bench) == "failed"
    bench.after(1_799.0)
    assert shown(bench) == "failed"
    bench.after(1.0)
    assert shown(bench) is None


def test_progress_can_be_set_for_an_unknown_jid(bench: Bench) -> None:
    bench.do(SetProgress("no job", None, "text"))
    assert shown(bench, "no job") == "unknown"


@pytest.mark.parametrize(("until", "end"), [(60.0, 1_800.0), (3_600.0, 3_600.0), (9 * DAY, DAY)])
def test_a_lease_is_extended_never_cut_and_by_a_day_at_most(bench: Bench, until: float, end: float) -> None:
    bench.push("a")
    job = bench.lease()
    bench.do(SetProgress("a", None, None, bench.now.wall + until))
    assert job.lease is not None
    assert job.lease.end - bench.now.steady == end
    assert bench.after(end - 0.001).expired == 0
    assert bench.after(0.001).expired == 1

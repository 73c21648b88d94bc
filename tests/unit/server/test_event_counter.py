"""The events of journal entries as counters."""

import pytest

from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Fail, Succeed, Tick
from crossdock.model.events.codec import decode_entry
from crossdock.server.activity import DEAD, EXPIRED, FAILED, LEASED, PROCESSED, PUSHED, RETRIED
from crossdock.server.event_counter import ADD_AT, EventCounter
from tests.support.states import Story


class Counted(Story):
    """An engine whose events are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.counter = EventCounter()
        self._counted = 0

    def totals(self, queue: str = "default") -> list[int]:
        new, self._counted = self.batches[self._counted :], len(self.batches)
        for entry in new:
            events = decode_entry(entry).events
            self.counter.observe([events], [(entry, len(events))])
        self.counter.add_collected()
        return self.counter.activity.queues[queue].totals

    def pass_time(self, seconds: float) -> None:
        """Beside the half second that each command takes."""
        self.now = Now(self.now.wall + seconds, self.now.steady + seconds)

    def claim(self, worker: str = "w") -> Claim:
        return Claim("faktory", worker)


@pytest.fixture
def story() -> Counted:
    return Counted()


def test_a_job_that_succeeds_is_pushed_leased_and_processed(story: Counted) -> None:
    story.push("a", "b")
    story.pass_time(2.5)
    story.lease()
    story.pass_time(4.5)
    story.do(Succeed("a", story.claim()))
    totals = story.totals()
    assert [totals[each] for each in (PUSHED, LEASED, PROCESSED, FAILED)] == [2, 1, 1, 0]
    activity = story.counter.activity
    assert activity.queues["default"].wait.sum == pytest.approx(3)
    assert activity.queues["default"].run.sum == pytest.approx(5)
    assert activity.total.totals == totals
    assert activity.total.wait.sum == pytest.approx(3)


def test_a_failure_counts_as_processed_failed_and_retried(story: Counted) -> None:
    story.push("a")
    story.lease()
    story.do(Fail("a", story.claim(), "Timeout", "too slow"))
    totals = story.totals()
    assert [totals[each] for each in (PROCESSED, FAILED, RETRIED, DEAD, EXPIRED)] == [1, 1, 1, 0, 0]


def test_an_expired_lease_is_counted_without_a_run_time(story: Counted) -> None:
    story.push("a")
    story.lease()
    story.pass_time(1e6)
    story.do(Tick(10))
    totals = story.totals()
    assert [totals[each] for each in (LEASED, EXPIRED)] == [1, 1]
    assert story.counter.activity.queues["default"].run.sum == 0


def test_values_are_added_once_enough_are_collected(story: Counted) -> None:
    story.push(*(f"job-{n}" for n in range(5)))
    entry = story.batches[-1]
    events = decode_entry(entry).events
    activity = story.counter.activity
    story.counter.observe([events], [(entry, 1)])
    assert activity.total.totals[PUSHED] == 0
    story.counter.observe([events] * (ADD_AT - 1), [(entry, ADD_AT - 1)])
    assert activity.total.totals[PUSHED] == 5 * ADD_AT
    assert story.counter.entry_events.cumulative((1.0, 1_000.0)) == [1, 2, 2]
    assert story.counter.entry_bytes.sum == 2 * len(entry)

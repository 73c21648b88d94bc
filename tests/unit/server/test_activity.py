"""Activity by queue: bounded to the busiest queues, with a history of an hour."""

from crossdock.server.activity import OTHER, PUSHED, QUEUES, STEPS, Activity


def _end_step(activity: Activity, ready: int = 0) -> None:
    activity.end_step(lambda name: 0, ready)


def test_queues_beyond_the_limit_are_counted_together() -> None:
    activity = Activity()
    for n in range(QUEUES + 5):
        activity.count(PUSHED, f"queue-{n}")
    assert len(activity.queues) == QUEUES
    assert (activity.other.totals[PUSHED], activity.total.totals[PUSHED]) == (5, QUEUES + 5)


def test_a_busier_queue_takes_the_place_of_an_idle_one() -> None:
    activity = Activity()
    for n in range(QUEUES):
        activity.count(PUSHED, f"queue-{n}", 1 if n == 7 else 50)
    activity.count(PUSHED, "late", 100)
    assert "late" not in activity.queues
    _end_step(activity)
    assert "late" in activity.queues
    assert "queue-7" not in activity.queues
    assert len(activity.queues) == QUEUES
    activity.count(PUSHED, "late", 3)
    assert activity.queues["late"].totals[PUSHED] == 3  # since it is tracked: the others were counted as other


def test_equally_busy_queues_keep_their_places() -> None:
    activity = Activity()
    for n in range(QUEUES):
        activity.count(PUSHED, f"queue-{n}", 50)
    activity.count(PUSHED, "late", 50)
    _end_step(activity)
    assert "late" not in activity.queues


def test_millions_of_queue_names_take_bounded_memory() -> None:
    activity = Activity()
    for n in range(20_000):
        activity.count(PUSHED, f"queue-{n}")
    assert len(activity.queues) == QUEUES
    assert len(activity._candidates) <= 2_000


def test_a_queue_named_like_the_others_is_one_of_them() -> None:
    activity = Activity()
    activity.count(PUSHED, OTHER)
    assert activity.queues == {}
    assert activity.other.totals[PUSHED] == 1


def test_the_history_holds_the_last_hour_oldest_first() -> None:
    activity = Activity()
    for step in range(STEPS + 3):
        activity.count(PUSHED, "mail", step)
        _end_step(activity)
    series = activity.queues["mail"].series(activity.steps)
    assert series.counts["pushed"] == list(range(3, STEPS + 3))
    assert activity.queues["mail"].lately(activity.steps, 2)[PUSHED] == STEPS + 1 + STEPS + 2


def test_a_removed_queue_is_forgotten_once_it_is_idle() -> None:
    activity = Activity()
    activity.count(PUSHED, "mail")
    for _ in range(6):
        activity.end_step(lambda name: None, 0)
        assert "mail" in activity.queues
    activity.end_step(lambda name: None, 0)
    assert "mail" not in activity.queues


def test_ready_jobs_of_queues_that_are_not_tracked_are_counted_together() -> None:
    activity = Activity()
    activity.count(PUSHED, "mail")
    activity.end_step(lambda name: 3, 10)
    assert activity.queues["mail"].series(1).ready == [3]
    assert activity.other.series(1).ready == [7]
    assert activity.total.series(1).ready == [10]

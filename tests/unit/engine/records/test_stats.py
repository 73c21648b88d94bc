"""Statistics: streaming sums, the buckets of the histogram, and how long they are kept."""

import statistics
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engine.records import stats as engine_stats
from crossdock.engine.records.stats import FAILURE, RUN, WAIT, Moments, QueueDay, Stats, bucket_of, coarse
from crossdock.model.clock import DAY
from crossdock.model.stats_retention import HISTOGRAM_DAYS, STATS_DAYS

seconds = st.floats(0, 1e7)


def moments(values: list[float]) -> Moments:
    stats = Stats()
    for value in values:
        stats.book("q", 0.0, WAIT, value)
    return stats.days["q"][0].wait


@given(st.lists(seconds, min_size=2, max_size=600))
def test_mean_and_variance_are_those_of_the_whole_list(values: list[float]) -> None:
    found = moments(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.vk / (found.n - 1) == pytest.approx(statistics.variance(values), rel=1e-6, abs=1e-6)


def test_equal_values_have_no_variance_however_many() -> None:
    assert moments([0.1] * 5_000).vk == pytest.approx(0.0, abs=1e-12)


@given(st.lists(seconds, max_size=50))
def test_every_value_is_in_one_bucket(values: list[float]) -> None:
    if values:
        found = moments(values)
        assert sum(found.histogram.values()) == len(values)
        assert set(found.histogram) == {bucket_of(value) for value in values}


MINUTE, HOUR = 60.0, 3_600.0


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        (0.0, 0),
        (0.999, 0),
        (1.0, 1),
        (59.999, 59),
        (MINUTE, 60),
        (2 * MINUTE - 0.001, 60),
        (2 * MINUTE, 61),
        (HOUR - 0.001, 118),
        (HOUR, 119),
        (2 * HOUR, 123),
        (2 * HOUR + 15 * MINUTE, 124),
        (DAY - 0.001, 210),
        (DAY, 211),
        (2.0 * DAY, 235),
        (3.0 * DAY - 0.001, 258),
        (3.0 * DAY, 259),
        (1_000.0 * DAY, 1_256),
    ],
)
def test_buckets_are_those_of_the_original_protocol_document(value: float, bucket: int) -> None:
    assert bucket_of(value) == bucket
    assert moments([value]).histogram == {bucket: 1}


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        (-1.0, -1),
        (59.0, 59),
        (HOUR - 0.001, 118),
        (HOUR, 119),
        (2 * HOUR - 0.001, 119),
        (2 * HOUR, 120),
        (DAY - 0.001, 141),
        (DAY, 142),
        (2.0 * DAY - 0.001, 142),
        (2.0 * DAY, 143),
        (3.0 * DAY, 144),
        (1_000.0 * DAY, 1_141),
    ],
)
def test_the_histogram_of_qless_clients_follows_from_the_fine_one(value: float, bucket: int) -> None:
    assert coarse(bucket_of(value)) == bucket


@given(seconds, seconds)
def test_a_longer_time_is_never_in_a_lower_bucket(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert bucket_of(low) <= bucket_of(high)


def test_values_are_counted_by_queue_day_and_kind() -> None:
    stats = Stats()
    stats.book("a", 0.0, WAIT, 1.0)
    stats.book("a", DAY - 0.001, RUN, 2.0)
    stats.book("a", DAY + 0.0, FAILURE, 1.0)
    stats.book("b", DAY + 1.0, WAIT, 3.0)
    stats.book("a", DAY + 2.0, FAILURE, 1.0)
    assert stats.days == {
        "a": {0: QueueDay(Moments(1, 1.0, 0.0, {1: 1}), Moments(1, 2.0, 0.0, {2: 1})), DAY: QueueDay(failures=2)},
        "b": {DAY: QueueDay(Moments(1, 3.0, 0.0, {3: 1}))},
    }


def test_thirty_days_are_kept_and_seven_of_them_with_a_histogram() -> None:
    assert (STATS_DAYS, HISTOGRAM_DAYS) == (30, 7)
    stats = Stats()
    for day in range(40):
        stats.book("q", day * DAY + 5.0, WAIT, 1.0)
        stats.book("q", day * DAY + 5.0, RUN, 1.0)
    kept = stats.days["q"]
    assert list(kept) == [day * DAY for day in range(10, 40)]
    assert [start // DAY for start, page in kept.items() if page.wait.histogram] == list(range(33, 40))
    assert [start // DAY for start, page in kept.items() if page.run.histogram] == list(range(33, 40))
    assert all(page.wait.n == page.run.n == 1 for page in kept.values())


def test_days_are_counted_back_from_the_newest_of_that_queue() -> None:
    """An idle queue keeps its days. Days without values count."""
    stats = Stats()
    stats.book("rests", 0.0, WAIT, 1.0)
    stats.book("busy", 0.0, WAIT, 1.0)
    stats.book("busy", 29.0 * DAY, WAIT, 1.0)
    assert list(stats.days["busy"]) == [0, 29 * DAY]
    stats.book("busy", 30.0 * DAY, WAIT, 1.0)
    assert list(stats.days["busy"]) == [29 * DAY, 30 * DAY]
    assert list(stats.days["rests"]) == [0]
    assert stats.days["rests"][0].wait.histogram == {1: 1}


bookings = st.tuples(
    st.sampled_from("abcd"), st.integers(0, 50), st.sampled_from([WAIT, RUN, FAILURE]), st.floats(0, 1e5)
)


@given(st.lists(bookings, max_size=40), st.data())
def test_the_sums_do_not_depend_on_when_they_are_read(
    booked: list[tuple[str, int, int, float]], data: st.DataObject
) -> None:
    """A snapshot adds values earlier than a running server does. Both must give the same bits, for any clocks of
    callers, any retention and any number of queues.
    """
    looked, not_looked = Stats(), Stats()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_stats, "QUEUES_AT_MOST", 3)
        for queue, day, what, value in booked:
            kept = data.draw(st.sampled_from([(30.0, 7.0)] * 8 + [(100.0, 20.0), (5.0, 2.0), (1.0, 1.0), (2.0, 9.0)]))
            for stats in (looked, not_looked):
                stats.keep(*kept)
                stats.book(queue, day * DAY + 1.0, what, value)
            if data.draw(st.booleans()):
                looked = Stats(deepcopy(looked.days), dict(looked.gone), looked.stats_days, looked.histogram_days)
        assert list(looked.days.items()) == list(not_looked.days.items())


@pytest.mark.parametrize("looked", [False, True])
def test_forgotten_days_do_not_come_back_when_more_is_kept(looked: bool) -> None:
    """The pipeline forgets by the same rule. A day that begins again would hold less than the events say."""
    stats = Stats()
    for day in (0, 20, 40):
        stats.book("q", day * DAY + 1.0, WAIT, 1.0)
    assert not looked or list(stats.days["q"]) == [20 * DAY, 40 * DAY]
    stats.keep(100, 100)
    for day in (0, 20):
        stats.book("q", day * DAY + 1.0, WAIT, 1.0)
    assert {day // DAY: page.wait for day, page in stats.days["q"].items()} == {
        20: Moments(2, 1.0, 0.0, {}),
        40: Moments(1, 1.0, 0.0, {1: 1}),
    }
    stats.book("q", 30.0 * DAY, WAIT, 1.0)
    stats.book("q", 35.0 * DAY, WAIT, 1.0)
    with_histogram = {day // DAY for day, page in stats.days["q"].items() if page.wait.histogram}
    assert (sorted(day // DAY for day in stats.days["q"]), with_histogram) == ([20, 30, 35, 40], {35, 40})


def test_less_is_kept_from_the_moment_it_is_set() -> None:
    stats = Stats()
    for day in (0, 5, 9):
        stats.book("q", day * DAY + 1.0, WAIT, 1.0)
    stats.keep(5, 1)
    assert {day // DAY: bool(page.wait.histogram) for day, page in stats.days["q"].items()} == {5: False, 9: True}
    stats.keep(30, 7)
    stats.book("q", 4.0 * DAY, WAIT, 1.0)
    assert list(stats.days["q"]) == [5 * DAY, 9 * DAY]


def test_a_caller_with_a_later_clock_removes_older_histograms_for_good() -> None:
    """It was cleared, and later values must not fill it again, because the tables have none."""
    stats = Stats()
    for day in (0, 8, 0):
        stats.book("q", day * DAY + 1.0, WAIT, 1.0)
    assert stats.days["q"] == {
        0: QueueDay(Moments(2, 1.0, 0.0, {})),
        8 * DAY: QueueDay(Moments(1, 1.0, 0.0, {1: 1})),
    }


def test_times_after_the_calendar_count_on_its_last_day() -> None:
    """As in the tables: some callers send milliseconds."""
    stats = Stats()
    stats.book("q", 1.8e12, WAIT, 1.0)
    stats.book("q", 1.9e12, WAIT, 1.0)
    assert {day // DAY: page.wait.n for day, page in stats.days["q"].items()} == {2_932_896: 2}


def test_the_number_of_queues_with_statistics_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_stats, "QUEUES_AT_MOST", 3)
    stats = Stats()
    for queue in "abc":
        stats.book(queue, 0.0, WAIT, 1.0)
    stats.book("a", DAY, WAIT, 1.0)
    for queue in "de":
        stats.book(queue, DAY, WAIT, 1.0)
    assert {queue: list(days) for queue, days in stats.days.items()} == {"a": [0, DAY], "d": [DAY], "e": [DAY]}


def test_the_number_of_buckets_is_limited() -> None:
    """For any clocks of callers and any first value."""
    found = moments([-float(n) for n in range(1, 2_001)] + [5.0] + [float(n) * DAY for n in range(1_700, 4_000)])
    assert (found.n, found.histogram[-1], found.histogram[5]) == (4_301, 2_000, 1)
    assert (max(found.histogram), found.histogram[1_998]) == (1_998, 4_000 - 1_742)


def test_reading_the_sums_changes_nothing() -> None:
    stats = Stats()
    for value in (1.0, 2.0, 70.0):
        stats.book("q", 1.0, WAIT, value)
        stats.book("q", 1.0, FAILURE, 1.0)
    first, page = stats.days, stats.page("q", 0)
    assert page == first["q"][0] and page.wait.n == 3 and page.wait.histogram == {1: 1, 2: 1, 60: 1}
    stats.book("q", 2.0, WAIT, 3.0)
    assert (page.wait.n, first["q"][0].wait.n, stats.days["q"][0].wait.n) == (3, 3, 4)
    assert stats.page("q", DAY) is None and stats.page("other", 0) is None

from crossdock.web.rate_limits import CALLERS, RateLimit


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(per_second=2, burst=3, clock=clock)
    assert [limit.wait_s("a") for _ in range(4)] == [0, 0, 0, 1]
    clock.now = 0.5
    assert [limit.wait_s("a") for _ in range(2)] == [0, 1]


def test_callers_have_limits_of_their_own() -> None:
    limit = RateLimit(per_second=1, burst=1, clock=Clock())
    assert [limit.wait_s("a"), limit.wait_s("b"), limit.wait_s("a")] == [0, 0, 1]


def test_the_wait_is_the_time_until_the_next_request_is_allowed() -> None:
    clock = Clock()
    limit = RateLimit(per_second=5 / 60, burst=1, clock=clock)
    limit.wait_s("a")
    assert limit.wait_s("a") == 12
    clock.now = 12.0
    assert limit.wait_s("a") == 0


def test_the_table_is_bounded_and_forgets_the_quietest_caller() -> None:
    limit = RateLimit(per_second=1, burst=1, clock=Clock())
    for each in range(CALLERS + 1):
        limit.wait_s(str(each))
    assert len(limit) == CALLERS
    assert limit.wait_s("1") == 1  # still known
    assert limit.wait_s("0") == 0  # forgotten

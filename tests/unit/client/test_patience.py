"""How long a call is repeated, and the pauses between its tries."""

from itertools import pairwise

import pytest

from crossdock.client.errors import Broken, ClientError, NoServer, Refused, ServerFull, WrongPassword
from crossdock.client.retries import FIRST_S, LONGEST_S, Patience


class Time:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def pauses(patience_s: float, drawn: float) -> list[float]:
    time = Time()
    patience = Patience(patience_s, time, lambda: drawn)
    found: list[float] = []
    time.now += 3_600  # the time of the first try does not count: a call may wait for long
    while True:
        try:
            found.append(patience.after(NoServer("none")))
        except NoServer:
            return found
        time.now += found[-1]


@pytest.mark.parametrize("drawn", [0.0, 0.5, 0.999])
def test_pauses_grow_and_end_with_the_patience(drawn: float) -> None:
    found = pauses(20, drawn)
    assert sum(found) == pytest.approx(20)
    assert FIRST_S / 2 <= found[0] <= FIRST_S
    assert all(later >= earlier for earlier, later in pairwise(found[:-1]))
    assert max(found) <= LONGEST_S
    assert found[-2] >= LONGEST_S / 2


def test_without_patience_there_is_one_try() -> None:
    assert pauses(0, 0.5) == []


@pytest.mark.parametrize("error", [Refused("no"), WrongPassword("no"), ClientError("no")])
def test_other_errors_are_final(error: ClientError) -> None:
    with pytest.raises(type(error)):
        Patience(60).after(error)


@pytest.mark.parametrize("error", [NoServer("none"), Broken("lost"), ServerFull("full")])
def test_the_last_error_says_how_long_it_was_tried(error: ClientError) -> None:
    time = Time()
    patience = Patience(5, time)
    patience.after(error)
    time.now += 5
    with pytest.raises(type(error), match="tried for 5 s") as caught:
        patience.after(error, sent=True)
    assert ("not known whether" in str(caught.value)) is not isinstance(error, ServerFull)
    assert caught.value.__cause__ is error

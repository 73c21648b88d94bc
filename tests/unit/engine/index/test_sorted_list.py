"""`SortedList` compared with a plain sorted list, for any mix of operations: fast paths and slow paths must agree."""

from bisect import bisect_left, bisect_right, insort
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crossdock.engine.index.sorted_list import SortedList

Key = tuple[int]

#: Few values, so that equal ones occur.
small = st.tuples(st.integers(0, 40))
spots = st.integers(0, 10_000)


class OrderBesideList(RuleBasedStateMachine):
    """The internal lists hold at most `load` values here, so that a few values make many lists."""

    def __init__(self) -> None:
        super().__init__()
        self.order: SortedList[Key] = SortedList()
        self.plain: list[Key] = []
        self.highest = 40

    @initialize(load=st.sampled_from([4, 5, 8, 1_000]), start=st.lists(small, max_size=30))
    def start(self, load: int, start: list[Key]) -> None:
        self.order = SortedList(start)
        self.order._reset(load)
        self.plain = sorted(start)

    @rule(first=st.integers(0, 40), many=st.sampled_from([1, 63, 64, 200]))
    def add_all(self, first: int, many: int) -> None:
        values = [((first + number * 7) % 41,) for number in range(many)]
        self.order.add_all(values)
        self.plain = sorted(self.plain + values)

    @precondition(lambda self: self.plain)
    @rule(spot=spots, many=st.sampled_from([1, 63, 64, 200]))
    def take_all(self, spot: int, many: int) -> None:
        """Take existing values with all equal ones: in the engine no two values are equal."""
        at = spot % len(self.plain)
        gone = set(self.plain[at : at + many])
        taken = [value for value in self.plain if value in gone]
        self.order.take_all(taken)
        self.plain = [value for value in self.plain if value not in gone]

    @rule(values=st.lists(small, min_size=1, max_size=8))
    def add(self, values: list[Key]) -> None:
        for value in values:
            self.order.add(value)
            insort(self.plain, value)

    @rule(many=st.integers(1, 12))
    def append(self, many: int) -> None:
        """Like pushes: each at the end."""
        for _ in range(many):
            self.highest += 1
            self.order.add((self.highest,))
            self.plain.append((self.highest,))

    @rule(many=st.sampled_from([255, 256, 600]), gap=st.integers(-1, 1))
    def append_at_once(self, many: int, gap: int) -> None:
        """Like sorted bulk inserts: after all others, or all but a few."""
        first = self.highest + gap
        values = [(number,) for number in range(first, first + many)]
        self.highest = first + many
        self.order.update(reversed(values))
        self.plain = sorted(self.plain + values)

    @precondition(lambda self: self.plain)
    @rule(many=st.integers(1, 12))
    def take_first(self, many: int) -> None:
        """Like leases: each at the front."""
        for _ in range(min(many, len(self.plain))):
            assert self.order.first() == self.plain[0]
            self.order.take(self.plain.pop(0))

    @precondition(lambda self: self.plain)
    @rule(many=st.integers(1, 12))
    def take_last(self, many: int) -> None:
        for _ in range(min(many, len(self.plain))):
            self.order.take(self.plain.pop())

    @precondition(lambda self: self.plain)
    @rule(some=st.lists(spots, min_size=1, max_size=6), quickly=st.booleans())
    def take_any(self, some: list[int], quickly: bool) -> None:
        for spot in some[: len(self.plain)]:
            value = self.plain.pop(spot % len(self.plain))
            (self.order.take if quickly else self.order.remove)(value)

    @precondition(lambda self: self.plain)
    @rule(spot=spots)
    def look_by_index(self, spot: int) -> None:
        """Builds the internal index, which later changes must discard."""
        spot %= len(self.plain)
        assert self.order[spot] == self.plain[spot]
        assert self.order.index(self.plain[spot]) == bisect_left(self.plain, self.plain[spot])

    @rule(value=small)
    def look_by_value(self, value: Key) -> None:
        assert self.order.bisect_left(value) == bisect_left(self.plain, value)
        assert self.order.bisect_right(value) == bisect_right(self.plain, value)
        assert (value in self.order) == (value in self.plain)

    @rule(start=st.integers(0, 40), length=st.integers(0, 40))
    def look_at_a_page(self, start: int, length: int) -> None:
        assert list(self.order.islice(start, start + length)) == self.plain[start : start + length]

    @rule()
    def pop(self) -> None:
        if self.plain:
            assert self.order.pop() == self.plain.pop()

    @invariant()
    def same(self) -> None:
        assert list(self.order) == self.plain
        assert [self.order[spot] for spot in range(len(self.plain))] == self.plain, "by the index inside"
        assert len(self.order) == len(self.plain)
        assert bool(self.order) == bool(self.plain)
        inside: Any = self.order
        assert [values for values in inside._lists if not values] == []
        assert inside._maxes == [values[-1] for values in inside._lists]


TestOrder = OrderBesideList.TestCase
TestOrder.settings = settings(stateful_step_count=40)


def test_taking_many_values_fails_if_one_is_missing() -> None:
    order: SortedList[Key] = SortedList((number,) for number in range(100))
    with pytest.raises(ValueError, match="not all"):
        order.take_all([(number,) for number in range(1, 101)])
    assert len(order) == 100


def test_taking_a_missing_value_fails_and_keeps_all_others() -> None:
    """Recovery turns these errors into `Damaged`."""
    order: SortedList[Key] = SortedList([(1,), (3,), (5,)])
    for value in (0, 2, 4, 6):
        with pytest.raises(ValueError, match="not in list"):
            order.take((value,))
    assert list(order) == [(1,), (3,), (5,)]
    with pytest.raises((ValueError, LookupError)):
        SortedList[Key]().take((1,))
    with pytest.raises(LookupError):
        SortedList[Key]().first()


def test_values_appended_at_the_end_are_taken_in_order_from_the_front() -> None:
    order: SortedList[Key] = SortedList()
    for value in range(20_000):
        order.add((value,))
    taken = []
    while order:
        taken.append(order.first()[0])
        order.take(order.first())
    assert taken == list(range(20_000))

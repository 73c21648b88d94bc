"""The audit trail in the engine's state: its entries, its bound, and what a flush and a restart keep."""

from typing import Any

from crossdock.engine.state import AUDIT_ENTRIES
from crossdock.model.commands.admin import Audit, Flush
from crossdock.model.events import SOFT, Audited
from tests.model.bench import Bench
from tests.model.rig import fold


def delete(count: int, **fields: Any) -> Audit:
    values = {"user": "anna", "address": "local", "via": "admin", "action": "delete", "target": "states:dead"}
    return Audit(**(values | fields), count=count)


def entries(bench: Bench) -> list[tuple[int, str, int]]:
    return [(each.entry, each.user, each.count) for each in bench.state.audit]


def test_each_action_is_an_entry_with_its_time(bench: Bench) -> None:
    bench.do(delete(1))
    bench.after(5.0)
    bench.do(delete(2))
    assert entries(bench) == [(1, "anna", 1), (2, "anna", 2)]
    first, second = bench.state.audit
    assert second.at - first.at == 5.0


def test_parts_of_one_action_share_an_entry(bench: Bench) -> None:
    bench.do(delete(250))
    began = bench.state.audit[-1].at
    bench.after(1.0)
    bench.do(delete(250, continues=True))
    bench.do(delete(7, continues=True))
    assert entries(bench) == [(1, "anna", 507)]
    assert bench.state.audit[-1].at == began
    assert [event.count for event in bench.events if isinstance(event, Audited)] == [250, 250, 7]


def test_a_part_after_an_action_of_another_operator_is_an_entry_of_its_own(bench: Bench) -> None:
    bench.do(delete(250))
    bench.do(delete(1, user="ben"))
    bench.do(delete(250, continues=True))
    bench.do(delete(3, continues=True, target="states:failed"))
    assert entries(bench) == [(1, "anna", 250), (2, "ben", 1), (3, "anna", 250), (4, "anna", 3)]


def test_the_oldest_entries_are_dropped(bench: Bench) -> None:
    for _ in range(AUDIT_ENTRIES + 3):
        bench.do(delete(1))
    assert len(bench.state.audit) == AUDIT_ENTRIES
    assert (bench.state.audit[0].entry, bench.state.audit[-1].entry) == (4, AUDIT_ENTRIES + 3)


def test_a_flush_keeps_the_trail(bench: Bench) -> None:
    bench.do(delete(1))
    bench.do(Flush("faktory"))
    bench.do(delete(2))
    assert entries(bench) == [(1, "anna", 1), (2, "anna", 2)]


def test_a_replay_of_the_journal_gives_the_same_trail(bench: Bench) -> None:
    for count in (1, 2):
        bench.do(delete(count))
        bench.do(delete(10, continues=True))
    assert list(fold(bench.batches).audit) == list(bench.state.audit)


def test_a_reply_waits_for_the_entry() -> None:
    assert Audited not in SOFT

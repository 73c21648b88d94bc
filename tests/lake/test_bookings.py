"""The rows of the lake give the live statistics of the engine, and every lease with exactly one end."""

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.model.clock import DAY
from crossdock.model.commands.core import Enqueue
from crossdock.model.events import AnyEvent, Pushed
from crossdock.model.job import Form, Spec
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.redis.qless.call import UNIFIED_2013, Dialect
from tests.lake.ledger import Row, booked, check_pushed_at, open_leases, rows_of, same_pages, without_end
from tests.model.resqu_simulation import ResquWorld
from tests.model.simulation import World
from tests.qless.replay import QlessDispatcher
from tests.qless.walk import DIALECTS as WALK_DIALECTS
from tests.qless.walk import Walk
from tests.support.dispatcher import stored
from tests.support.qless_recordings import DIALECTS, RECORDINGS


def rows_agree(events: Sequence[AnyEvent]) -> list[Row]:
    """The rows of these events. Checks that they agree with the fold of the events."""
    state = without_end(EngineState())
    for event in events:
        apply(state, event)
        without_end(state)
    rows = rows_of([[event] for event in events])
    assert same_pages(state.stats, booked(rows))
    leased = [state.jobs[number].lease for _, number in state.by_state[State.LEASED]]
    assert open_leases(rows) == {lease.token for lease in leased if lease is not None}
    check_pushed_at(rows)
    return rows


@pytest.mark.parametrize("dialect", WALK_DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", range(6))
def test_a_walk_of_qless_and_another_protocol_agrees_with_the_live_statistics(seed: int, dialect: Dialect) -> None:
    walk = Walk(seed, dialect)
    for _ in range(1_500):
        walk.step()
    rows = rows_agree(stored(walk.dispatcher.events))
    assert {row["outcome"] for row in rows} > {"succeeded", "failed"}
    assert check_pushed_at(rows), "jobs were put again after they had ended"


def test_a_job_of_another_protocol_is_counted_in_its_own_queue_whatever_a_retry_names() -> None:
    dispatcher = QlessDispatcher()
    rules = Policy(max_failures=3)
    dispatcher.do(Enqueue("faktory", [Spec("theirs", "mail", "kind", b"[1]", Form.JSON, 0, rules, 0.0)]))
    dispatcher.call("pop", "1", "mail", "worker", "1")
    dispatcher.call("retry", "2", "theirs", "another", "worker", "0")
    rows = rows_agree(stored(dispatcher.events))
    [failed] = [row for row in rows if row["event"] == "failed"]
    assert (failed["booked_queue"], failed["booked_failures"]) == ("mail", 1)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_recordings_of_every_dialect_agree_with_the_live_statistics(recording: str) -> None:
    runs = 0
    for lines in RECORDINGS[recording].values():
        dispatcher = QlessDispatcher()
        dispatcher.dialect = DIALECTS[recording]
        for line in lines:
            if line.script:
                dispatcher.answer_script(line)
            else:
                dispatcher.answer(line.call)
        runs += sum(row["booked_run"] is True for row in rows_agree(stored(dispatcher.events)))
    assert runs


def test_failed_may_be_negative_as_in_the_real_scripts() -> None:
    """19 of 195 recorded replies of `stats` are negative. A put of a failed job subtracts the failure from the day of
    the failure, by the clock of the client that failed it, but from the queue that the job is put into."""
    recorded = [
        json.loads(line.reply["bulk"])["failed"]
        for scenarios in RECORDINGS.values()
        for lines in scenarios.values()
        for line in lines
        if "stats" in (line.script, *line.call[:1]) and "bulk" in line.reply
    ]
    assert (len(recorded), sum(failed < 0 for failed in recorded)) == (195, 19)
    dispatcher, today, yesterday = QlessDispatcher(), 1_794_765_345, 1_794_765_345 - DAY

    def failed(queue: str, day: int) -> int:
        found: int = json.loads(dispatcher.call("stats", str(today), queue, str(day)))["failed"]
        return found

    def fails(jid: str, t: int) -> None:
        dispatcher.call("put", str(t), "worker", "mail", jid, "Mail", "{}", "0", "retries", "0")
        dispatcher.call("pop", str(t), "mail", "worker", "1")
        dispatcher.call("fail", str(t), jid, "worker", "oops", "no luck")

    fails("by a clock behind", yesterday)
    assert (failed("mail", yesterday), failed("billing", yesterday)) == (1, 0)
    dispatcher.call("put", str(today), "worker", "billing", "by a clock behind", "Mail", "{}", "0")
    assert (failed("mail", yesterday), failed("billing", yesterday)) == (1, -1), "as in the scripts"

    dispatcher.call("put", str(today), "worker", "mail", "exhausted", "Mail", "{}", "0", "retries", "0")
    dispatcher.call("pop", str(today), "mail", "worker", "1")
    dispatcher.call("retry", str(today), "exhausted", "other", "worker")
    dispatcher.call("cancel", str(today), "exhausted")
    assert (failed("other", today), failed("mail", today)) == (1, -1), (
        "counted in the queue that `retry` names, subtracted from its own queue"
    )

    fails("brought back", today)
    dispatcher.call("unfail", str(today), "mail", "oops")
    assert failed("mail", today) == 0, "unfail subtracts nothing"
    pages = booked(rows_agree(stored(dispatcher.events)))
    assert {queue: sum(page.failed for page in days.values()) for queue, days in pages.items()} == {
        "mail": 1, "billing": -1, "other": 1,
    }  # fmt: skip


def test_the_oldest_scripts_subtract_failures_that_they_never_counted() -> None:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = UNIFIED_2013
    dispatcher.call("put", "1", "mail", "exhausted", "Mail", "{}", "0", "retries", "0")
    dispatcher.call("pop", "2", "mail", "worker", "1")
    dispatcher.call("retry", "3", "exhausted", "mail", "worker")
    dispatcher.call("put", "4", "mail", "exhausted", "Mail", "{}", "0")
    assert json.loads(dispatcher.call("stats", "5", "mail", "5"))["failed"] == -1
    assert booked(rows_agree(stored(dispatcher.events)))["mail"][0].failed == -1


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_simulation_with_power_cuts_agrees_with_the_live_statistics(seed: int, tmp_path: Path) -> None:
    world = World(seed, tmp_path)
    world.run(1_000)
    rows = rows_agree(world.log)
    assert {row["outcome"] for row in rows} > {"succeeded", "failed", "returned"}


def test_simulations_of_resqu_agree_with_the_live_statistics(tmp_path: Path) -> None:
    seen: set[str] = set()
    again = 0
    for seed in range(1, 6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = ResquWorld(seed, folder)
        world.run(1_000)
        rows = rows_agree(world.log)
        assert {(row["state"], row["why"]) for row in rows} > {("held", "batch")}
        seen |= {row["event"] for row in rows}
        again += check_pushed_at(rows)
    assert again, "jobs were rescheduled after a success"
    assert seen > {"rescheduled", "deferred", "taken", "put-on-queue", "resqu-batch-committed", "resqu-batch-ended"}


def test_numbers_of_any_size_are_limited_to_the_range_of_their_columns() -> None:
    """A client's priority may be as long as its line."""
    huge = 10**400
    specs = [
        Spec(f"job-{n}", "q", "kind", b"", Form.NONE, priority, Policy(tries))
        for n, (priority, tries) in enumerate([(huge, 2**80), (-huge, -(2**80)), (2**60 + 1, 3), (0.5, 0)])
    ]
    rows = rows_of([[Pushed(1.0, 1, "faktory", specs)]])
    assert [row["priority"] for row in rows] == [inf, -inf, float(2**60), 0.5]
    assert [row["retries"] for row in rows] == [2**63 - 1, -(2**63), 3, 0]
    alike = rows_of([[Pushed(1.0, 1, "faktory", specs[:1] * 3)]])
    assert [row["priority"] for row in alike] == [inf] * 3

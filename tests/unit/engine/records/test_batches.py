"""Faktory batches and their callbacks."""

import pytest

from crossdock.model.commands.admin import Bury, Remove, Requeue
from crossdock.model.commands.core import CommitBatch, Enqueue, LeaseNext, OpenBatch, Refused
from crossdock.model.events import BatchCallbackPushed
from crossdock.model.job import Callback, Links
from crossdock.model.policies import Disposition, Policy
from crossdock.model.states import State
from tests.model.bench import TERMS, Bench, held, spec
from tests.model.values import callback

DAY = 86_400.0
KEPT = Policy(1, success=Disposition.COMPLETE)
BOTH = (Callback.COMPLETE, Callback.SUCCESS)


def open_batch(bench: Bench, name: str, *calls: Callback, parent: str = "") -> None:
    complete, success = (callback(name, call) if call in calls else None for call in Callback)
    assert bench.do(OpenBatch(name, "faktory", parent, "", complete, success))


def called(bench: Bench) -> list[tuple[str, str]]:
    return [(event.name, event.call.name) for event in bench.events if isinstance(event, BatchCallbackPushed)]


def work_off(bench: Bench, *, succeed: bool = True) -> list[str]:
    done = []
    while (job := bench.do(LeaseNext("faktory", ("default", "mail"), "w", TERMS))) is not None:
        done.append(job.jid)
        (bench.succeed if succeed else bench.fail)(job.jid, "w", held(job))
    return done


def test_complete_and_success_are_called_once_in_this_order(bench: Bench) -> None:
    open_batch(bench, "g", *BOTH)
    bench.push("a", "b", links=Links(batch="g"))
    bench.do(CommitBatch("g"))
    assert called(bench) == []
    assert work_off(bench) == ["a", "b", "COMPLETE of g", "SUCCESS of g"]
    assert called(bench) == [("g", "COMPLETE"), ("g", "SUCCESS")]


def test_callbacks_wait_for_the_commit(bench: Bench) -> None:
    open_batch(bench, "g", Callback.SUCCESS)
    bench.push("a", links=Links(batch="g"))
    work_off(bench)
    assert called(bench) == []
    bench.do(CommitBatch("g"))
    assert called(bench) == [("g", "SUCCESS")]
    assert list(bench.ready_queues) == ["mail"]


def test_an_empty_batch_calls_back_at_once(bench: Bench) -> None:
    open_batch(bench, "g", Callback.COMPLETE)
    bench.do(CommitBatch("g"))
    assert called(bench) == [("g", "COMPLETE")]
    assert bench.do(CommitBatch("g"))
    assert called(bench) == [("g", "COMPLETE")]


@pytest.mark.parametrize("how", ["failed", "removed", "buried"])
def test_a_member_without_success_allows_complete_and_prevents_success(bench: Bench, how: str) -> None:
    open_batch(bench, "g", *BOTH)
    [number] = bench.push("a", links=Links(batch="g"), due=bench.now.wall + 1.0)
    bench.do(CommitBatch("g"))
    if how == "failed":
        bench.after(1.0)
        bench.lease()
        bench.fail("a")
    elif how == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.SCHEDULED})))
    else:
        bench.do(Bury("faktory", [number]))
    assert work_off(bench) == ["COMPLETE of g"]
    assert called(bench) == [("g", "COMPLETE")]


def test_a_member_that_succeeds_after_all_lets_the_success_callback_run(bench: Bench) -> None:
    open_batch(bench, "g", *BOTH)
    [number] = bench.push("a", links=Links(batch="g"))
    bench.do(CommitBatch("g"))
    work_off(bench, succeed=False)
    assert called(bench) == [("g", "COMPLETE")]
    bench.do(Requeue("faktory", list(bench.state.jobs)))
    assert sorted(work_off(bench)) == ["COMPLETE of g", "SUCCESS of g", "a"]
    assert number not in bench.state.jobs


def test_a_parent_waits_for_the_callbacks_of_its_child(bench: Bench) -> None:
    open_batch(bench, "parent", Callback.SUCCESS)
    open_batch(bench, "child", Callback.SUCCESS, parent="parent")
    bench.push("a", links=Links(batch="child"))
    bench.do(CommitBatch("parent"))
    bench.do(CommitBatch("child"))
    assert work_off(bench) == ["a", "SUCCESS of child", "SUCCESS of parent"]


def test_a_batch_that_does_not_exist_accepts_no_members_and_no_children(bench: Bench) -> None:
    assert list(bench.do(Enqueue("faktory", [spec("a", links=Links(batch="no"))]))) == [Refused.NO_BATCH]
    assert not bench.do(OpenBatch("child", "faktory", "no", "", None, None))
    assert not bench.do(CommitBatch("no"))
    assert bench.events == []


def test_batches_are_forgotten_after_their_time(bench: Bench) -> None:
    open_batch(bench, "uncommitted", Callback.SUCCESS)
    open_batch(bench, "committed", Callback.SUCCESS)
    open_batch(bench, "done", Callback.SUCCESS)
    for name in ("committed", "done"):
        bench.push(name, links=Links(batch=name))
        bench.do(CommitBatch(name))
    bench.lease()
    bench.lease()
    bench.succeed("done")
    work_off(bench)
    bench.after(1_800.0)
    assert list(bench.state.batches) == ["committed"]
    bench.after(30 * DAY - 1_801.0)
    assert list(bench.state.batches) == ["committed"]
    bench.after(1.0)
    assert bench.state.batches == {}


def test_removing_a_kept_member_does_not_change_the_counts(bench: Bench) -> None:
    open_batch(bench, "g", *BOTH)
    kept, _ = bench.push("kept", "waits", policy=KEPT, links=Links(batch="g", tracked=True))
    bench.do(CommitBatch("g"))
    bench.lease()
    bench.succeed("kept")
    bench.do(Remove("faktory", "expired", [kept], frozenset({State.COMPLETE})))
    assert called(bench) == []
    assert bench.state.progress["kept"].state == "success"
    assert work_off(bench) == ["waits", "COMPLETE of g", "SUCCESS of g"]


def test_a_forgotten_child_does_not_block_complete(bench: Bench) -> None:
    open_batch(bench, "parent", *BOTH)
    bench.do(CommitBatch("parent"))
    assert called(bench) == [("parent", "COMPLETE")]
    open_batch(bench, "next parent", *BOTH)
    open_batch(bench, "child", Callback.SUCCESS, parent="next parent")
    bench.do(CommitBatch("next parent"))
    assert ("next parent", "COMPLETE") not in called(bench)
    bench.after(1_800.0)
    assert ("next parent", "COMPLETE") in called(bench)


def test_pushing_a_member_that_failed_before_can_complete_a_batch(bench: Bench) -> None:
    open_batch(bench, "parent", Callback.COMPLETE)
    open_batch(bench, "child", Callback.SUCCESS, parent="parent")
    bench.do(CommitBatch("parent"))
    bench.do(CommitBatch("child"))
    bench.push("a", links=Links(batch="child"), failures=1)
    assert bench.state.batches["child"].finished == Callback.COMPLETE
    assert ("parent", "COMPLETE") in called(bench)


def test_a_batch_name_can_be_opened_once(bench: Bench) -> None:
    open_batch(bench, "g", Callback.COMPLETE)
    bench.clock.pass_by(1.0)
    assert not bench.do(OpenBatch("g", "faktory", "", "", None, callback("g", Callback.SUCCESS)))
    assert bench.state.batches["g"].complete is not None
    assert len(bench.state.batch_ends) == 1

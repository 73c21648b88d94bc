"""What hangs on a job is told of its end by whatever door it ends: results, needs, batches, locks, tracks. And what is
decided for a queue through one door holds for those who wait at the others."""

import itertools
import json
from typing import Any

import pytest

from crossdock.client.base import Refused
from crossdock.model.states import State
from tests.support.dispatcher import NEVER
from tests.support.floor import Floor
from tests.support.peer import Got, Peer
from tests.support.peers import PEERS, ViaFaktory

DOORS = sorted(PEERS)
WAITING = [door for door in DOORS if PEERS[door].waits]
PAIRS = list(itertools.product(DOORS, repeat=2))


def fetched(peer: Peer, queue: str = "q") -> Got:
    got = peer.fetch(queue)
    assert got is not None
    return got


def done(floor: Floor, through: str, queue: str = "q") -> None:
    worker = floor.peer(through)
    assert worker.succeed(fetched(worker, queue).ident)


def failed(floor: Floor, through: str, message: str = "no luck") -> None:
    worker = floor.peer(through)
    assert worker.fail(fetched(worker).ident, message)


def said(peer: Peer) -> bytes:
    return bytes(peer.wire.connection.said)  # type: ignore[attr-defined]


class TestResults:
    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_success(self, floor: Floor, by: str, through: str) -> None:
        """Workq's own keep theirs, and so do qless'. Another's is gone: who waited has heard, who asks later finds
        nothing."""
        known = floor.peer(by).push("q", ["a"])
        (job,) = floor.dispatcher.state.jobs.values()
        ident = known if by == "workq" else job.jid if by == "masenko" else f"c205d0c0-0000-4000-8000-{job.number:012x}"
        waits, later = floor.workq(), floor.workq()
        waits.ask_result(ident, 60)
        worker = floor.peer(through)
        assert worker.succeed(fetched(worker).ident, b"well done")
        result = b"well done" if through == "workq" else b""
        assert waits.result() == (True, result)
        later.ask_result(ident)
        assert later.result() == ((True, result) if PEERS[by].keeps else "-NOT-FOUND")

    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_failure(self, floor: Floor, by: str, through: str) -> None:
        known = floor.peer(by).push("q", ["a"], retry=0)
        (job,) = floor.dispatcher.state.jobs.values()
        ident = known if by == "workq" else job.jid if by == "masenko" else f"c205d0c0-0000-4000-8000-{job.number:012x}"
        waits, later = floor.workq(), floor.workq()
        waits.ask_result(ident, 60)
        failed(floor, through)
        message = b"" if through == "masenko" else b"no luck"  # a NACK says nothing
        assert waits.result() == (False, message)
        later.ask_result(ident)
        assert later.result() == ((False, message) if PEERS[by].keeps else "-NOT-FOUND")

    @pytest.mark.parametrize("through", DOORS)
    def test_a_dead_job_keeps_its_message(self, floor: Floor, through: str) -> None:
        floor.faktory().push("q", ["a"], retry=-1)
        failed(floor, through)
        asker = floor.workq()
        asker.ask_result("c205d0c0-0000-4000-8000-000000000001")
        assert asker.result() == (False, b"" if through == "masenko" else b"no luck")

    @pytest.mark.parametrize("through", DOORS)
    def test_run(self, floor: Floor, through: str) -> None:
        ident = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
        for ok in (True, False):
            runs = floor.workq()
            runs.wire.send(f"run {ident} q 60000 60000 4\r\nping\r\n".encode())
            if ok:
                done(floor, through)
            else:
                failed(floor, through)
            assert runs.result() == (ok, b"" if ok or through == "masenko" else b"no luck")
        assert not floor.dispatcher.state.jobs

    @pytest.mark.parametrize("through", DOORS)
    def test_the_worker_of_a_run_is_lost(self, floor: Floor, through: str) -> None:
        runs, worker = floor.workq(), floor.peer(through)
        runs.wire.send(b"run 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\nping\r\n")
        fetched(worker)
        floor.lose(worker)
        assert runs.result() == "-TIMEOUT"
        assert not floor.dispatcher.state.jobs


class TestNeeds:
    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_a_dependency_is_met_or_lost_through_any_protocol(self, floor: Floor, by: str, through: str) -> None:
        floor.peer(by).push("q", ["met"])
        floor.masenko().push("after", "a", blocked_by=[1])
        assert floor.workq().look("after") == 0
        done(floor, through)
        assert floor.workq().look("after") == 1
        floor.peer(by).push("q", ["lost"], retry=-1 if by == "faktory" else 0)
        floor.masenko().push("after", "b", blocked_by=[3], deadqueue="dead")
        failed(floor, through)
        assert floor.workq().look("dead") == 1

    @pytest.mark.parametrize("through", DOORS)
    def test_a_waiter_gets_a_freed_dependent(self, floor: Floor, through: str) -> None:
        masenko = floor.masenko()
        masenko.push("q", "first")
        masenko.push("after", "second", blocked_by=[1])
        waits = [floor.peer(door) for door in WAITING]
        for each in waits:
            each.ask("after", wait_s=2.0)
        done(floor, through)
        assert [bool(said(each)) for each in waits] == [True, False, False]

    def test_removed_or_at_its_end_it_is_lost(self, floor: Floor) -> None:
        workq = floor.workq()
        workq.ttl_ms = 1_000
        gone = workq.push("q", b"removed")
        workq.push("q", b"ends")
        for dependency in (1, 2):
            floor.masenko().push("after", dependency, blocked_by=[dependency], deadqueue="dead")
        workq.wire.send(f"delete {gone}\r\n".encode())
        assert workq.wire.line() == b"+OK"
        assert workq.look("dead") == 1
        floor.dispatcher.advance(1)
        assert workq.look("dead") == 2


class TestFaktorysRecords:
    @pytest.mark.parametrize("through", DOORS)
    def test_a_batch(self, floor: Floor, through: str) -> None:
        faktory = floor.faktory()
        calls: dict[str, Any] = {
            name: {"jobtype": "called", "queue": name, "args": []} for name in ("complete", "success")
        }
        bid = faktory.call(f"BATCH NEW {json.dumps(calls)}")
        for _ in range(2):
            faktory.push("q", ["a"], custom={"bid": bid})
        faktory.call(f"BATCH COMMIT {bid}")
        done(floor, through)
        failed(floor, through)
        assert (faktory.look("complete"), faktory.look("success")) == (1, 0)
        done(floor, through, "complete")
        floor.dispatcher.advance(20)
        done(floor, through)
        assert faktory.look("success") == 1
        done(floor, through, "success")
        assert json.loads(faktory.call(f"BATCH STATUS {bid}"))["pending"] == 0

    @pytest.mark.parametrize("through", DOORS)
    def test_a_unique_job(self, floor: Floor, through: str) -> None:
        faktory = floor.faktory()

        def push(until: str) -> bool:
            try:
                faktory.push("q", [until], custom={"unique_for": 9_000, "unique_until": until})
            except Refused as why:
                return "NOTUNIQUE" not in str(why)
            return True

        for until, free in (("success", [False, False, True]), ("start", [False, True, True])):
            worker = floor.peer(through)
            assert push(until)
            found = [push(until)]
            got = fetched(worker)
            found.append(push(until))
            worker.succeed(got.ident)
            found.append(push(until) or until == "start")
            assert found == free
            faktory.call("FLUSH")

    @pytest.mark.parametrize("through", DOORS)
    def test_a_track(self, floor: Floor, through: str) -> None:
        faktory, worker = floor.faktory(), floor.peer(through)
        jid = faktory.push("q", ["a"], custom={"track": 1})

        def state() -> Any:
            return json.loads(faktory.call(f"TRACK GET {jid}"))["state"]

        seen = [state()]
        got = fetched(worker)
        seen.append(state())
        worker.fail(got.ident)
        seen.append(state())
        floor.dispatcher.advance(20)
        worker.succeed(fetched(worker).ident)
        assert [*seen, state()] == ["enqueued", "working", "failed", "success"]

    @pytest.mark.parametrize(
        ("by", "through"), [pair for pair in PAIRS if PEERS[pair[0]].backs_off and not PEERS[pair[1]].says_when]
    )
    def test_mutate_and_info_cover_jobs_of_all_protocols(self, floor: Floor, by: str, through: str) -> None:
        """Workq's and qless' own are ready again at once, as is what qless' worker gives back, and failed for good they
        are in no set of Faktory's."""
        faktory = floor.faktory()
        floor.peer(by).push("q", ["needle"])
        assert _sets(faktory) == (1, 0, 0, 0)
        worker = floor.peer(through)
        got = fetched(worker)
        assert _sets(faktory) == (0, 1, 0, 0)
        worker.fail(got.ident)
        assert _sets(faktory) == (0, 0, 1, 0)
        _mutate(faktory, "requeue", "retries", regexp="*nothing*")
        assert _sets(faktory) == (0, 0, 1, 0)
        _mutate(faktory, "requeue", "retries", regexp="*needle*")
        assert _sets(faktory) == (1, 0, 0, 0)
        failed(floor, through)
        _mutate(faktory, "kill", "retries", jobtype="F" if by == "faktory" else "M")
        assert _sets(faktory) == (0, 0, 0, 1)
        _mutate(faktory, "discard", "dead")
        assert _sets(faktory) == (0, 0, 0, 0)


def _sets(faktory: ViaFaktory) -> tuple[int, int, int, int]:
    found = json.loads(faktory.call("INFO"))["faktory"]
    sets = found["sets"]
    return found["total_enqueued"], sets["working"], sets["retries"], sets["dead"]


def _mutate(faktory: ViaFaktory, cmd: str, target: str, **chosen: Any) -> None:
    body = {"cmd": cmd, "target": target, **({"filter": chosen} if chosen else {})}
    assert faktory.call(f"MUTATE {json.dumps(body)}") == "+OK"


class TestWaiting:
    """One row of all who wait, whatever their door (MODEL section 8)."""

    @pytest.mark.parametrize("order", list(itertools.permutations(WAITING)))
    def test_in_the_order_they_came(self, floor: Floor, order: tuple[str, ...]) -> None:
        waits = [floor.peer(door) for door in order]
        for each in waits:
            each.ask("other", "q", wait_s=2.0)
        for n in range(len(waits)):
            floor.peer(order[-1 - n]).push("q", [n])
            assert [bool(said(each)) for each in waits] == [i <= n for i in range(len(waits))]

    def test_waiters_that_left_are_passed_over(self, floor: Floor) -> None:
        waits = [floor.peer(door) for door in (*WAITING, *WAITING)]
        for each in waits:
            each.ask("q", wait_s=2.0)
        for each in waits[:-1]:
            each.close()
        floor.masenko().push("q", 1)
        assert said(waits[-1])
        assert len(floor.dispatcher.waits) == 0

    @pytest.mark.parametrize("by", DOORS)
    def test_a_pause_holds_for_all(self, floor: Floor, by: str) -> None:
        faktory, waits = floor.faktory(), [floor.peer(door) for door in WAITING]
        floor.peer(by).push("q", ["known"])
        faktory.call("QUEUE PAUSE q")
        for each in waits:
            each.ask("q", wait_s=2.0)
        floor.peer(by).push("q", ["more"])
        assert not any(said(each) for each in waits)
        assert floor.qless().fetch("q") is None
        faktory.call("QUEUE RESUME q")
        assert [bool(said(each)) for each in waits] == [True, True, False]
        floor.dispatcher.advance(2)
        assert said(waits[-1])

    @pytest.mark.parametrize("by", DOORS)
    def test_a_flush_leaves_them_waiting(self, floor: Floor, by: str) -> None:
        waits = [floor.peer(door) for door in WAITING]
        floor.faktory().push("q", ["held"])
        holds = {door: floor.peer(door) for door in DOORS}
        for door, peer in holds.items():
            peer.push(door, ["a"])
            fetched(peer, door)
        faktory = floor.faktory()
        faktory.call("QUEUE PAUSE q")
        for each in waits:
            each.ask("q", wait_s=2.0)
        faktory.call("FLUSH")
        for _ in WAITING:
            floor.peer(by).push("q", ["new"])
        assert all(said(each) for each in waits)
        for peer in holds.values():  # what they held is gone, and ends nothing else
            peer.close()
        assert len(floor.dispatcher.state.by_state[State.LEASED]) == len(WAITING)

    @pytest.mark.parametrize("door", DOORS)
    def test_behind_any_number_of_expired_jobs(self, floor: Floor, door: str) -> None:
        faktory, peer = floor.faktory(), floor.peer(door)
        stale_listings = {"jobtype": "T", "queue": "q", "args": [], "custom": {"expires_in": 1}}
        faktory.call("PUSHB " + json.dumps([{"jid": f"stale-{n:06d}", **stale_listings} for n in range(1_200)]))
        faktory.push("q", ["fresh"])
        floor.dispatcher.advance(2)
        for _ in range(1 if peer.waits else 3):  # a call removes a limited number of them
            peer.ask("q", wait_s=1.0)
            got = peer.given()
        assert got is not None and got.text == "fresh"


def test_nobody_waits_without_an_end(floor: Floor) -> None:
    for door in WAITING:
        peer = floor.peer(door)
        peer.ask("q", wait_s=3.0)
        assert peer.wire.connection.until < NEVER  # type: ignore[attr-defined]
        assert peer.given() is None

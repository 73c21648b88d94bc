"""Results, dependencies, batches, unique locks and progress are updated through whichever protocol a job ends. Changes
to a queue through one protocol reach requests that wait in others."""

import itertools
import json
from typing import Any

import pytest

from crossdock.client.errors import Refused
from crossdock.model.states import State
from tests.support.all_protocols import AllProtocols
from tests.support.dispatcher import NEVER
from tests.support.peer import Got, Peer
from tests.support.peers import PEERS, ViaFaktory

PROTOCOLS = sorted(PEERS)
WAITING = [protocol for protocol in PROTOCOLS if PEERS[protocol].waits]
PAIRS = list(itertools.product(PROTOCOLS, repeat=2))


def fetched(peer: Peer, queue: str = "q") -> Got:
    got = peer.fetch(queue)
    assert got is not None
    return got


def done(all_protocols: AllProtocols, through: str, queue: str = "q") -> None:
    worker = all_protocols.peer(through)
    assert worker.succeed(fetched(worker, queue).ident)


def failed(all_protocols: AllProtocols, through: str, message: str = "no luck") -> None:
    worker = all_protocols.peer(through)
    assert worker.fail(fetched(worker).ident, message)


def said(peer: Peer) -> bytes:
    return bytes(peer.wire.connection.said)  # type: ignore[attr-defined]


class TestResults:
    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_success(self, all_protocols: AllProtocols, by: str, through: str) -> None:
        """Workq's and qless' own jobs keep their results. Other jobs are gone: a client that waited received the
        result, a later request finds nothing."""
        known = all_protocols.peer(by).push("q", ["a"])
        (job,) = all_protocols.dispatcher.state.jobs.values()
        ident = known if by == "workq" else job.jid if by == "masenko" else f"c205d0c0-0000-4000-8000-{job.number:012x}"
        waits, later = all_protocols.workq(), all_protocols.workq()
        waits.ask_result(ident, 60)
        worker = all_protocols.peer(through)
        assert worker.succeed(fetched(worker).ident, b"well done")
        result = b"well done" if through == "workq" else b""
        assert waits.result() == (True, result)
        later.ask_result(ident)
        assert later.result() == ((True, result) if PEERS[by].keeps else "-NOT-FOUND")

    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_failure(self, all_protocols: AllProtocols, by: str, through: str) -> None:
        known = all_protocols.peer(by).push("q", ["a"], retry=0)
        (job,) = all_protocols.dispatcher.state.jobs.values()
        ident = known if by == "workq" else job.jid if by == "masenko" else f"c205d0c0-0000-4000-8000-{job.number:012x}"
        waits, later = all_protocols.workq(), all_protocols.workq()
        waits.ask_result(ident, 60)
        failed(all_protocols, through)
        message = b"" if through == "masenko" else b"no luck"  # a NACK has no message
        assert waits.result() == (False, message)
        later.ask_result(ident)
        assert later.result() == ((False, message) if PEERS[by].keeps else "-NOT-FOUND")

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_dead_job_keeps_its_message(self, all_protocols: AllProtocols, through: str) -> None:
        all_protocols.faktory().push("q", ["a"], retry=-1)
        failed(all_protocols, through)
        asker = all_protocols.workq()
        asker.ask_result("c205d0c0-0000-4000-8000-000000000001")
        assert asker.result() == (False, b"" if through == "masenko" else b"no luck")

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_run(self, all_protocols: AllProtocols, through: str) -> None:
        ident = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
        for ok in (True, False):
            runs = all_protocols.workq()
            runs.wire.send(f"run {ident} q 60000 60000 4\r\nping\r\n".encode())
            if ok:
                done(all_protocols, through)
            else:
                failed(all_protocols, through)
            assert runs.result() == (ok, b"" if ok or through == "masenko" else b"no luck")
        assert not all_protocols.dispatcher.state.jobs

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_run_whose_worker_is_lost(self, all_protocols: AllProtocols, through: str) -> None:
        runs, worker = all_protocols.workq(), all_protocols.peer(through)
        runs.wire.send(b"run 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\nping\r\n")
        fetched(worker)
        all_protocols.lose(worker)
        assert runs.result() == "-TIMEOUT"
        assert not all_protocols.dispatcher.state.jobs


class TestDependencies:
    @pytest.mark.parametrize(("by", "through"), PAIRS)
    def test_a_dependency_is_met_or_lost_through_any_protocol(
        self, all_protocols: AllProtocols, by: str, through: str
    ) -> None:
        all_protocols.peer(by).push("q", ["met"])
        all_protocols.masenko().push("after", "a", blocked_by=[1])
        assert all_protocols.workq().look("after") == 0
        done(all_protocols, through)
        assert all_protocols.workq().look("after") == 1
        all_protocols.peer(by).push("q", ["lost"], retry=-1 if by == "faktory" else 0)
        all_protocols.masenko().push("after", "b", blocked_by=[3], deadqueue="dead")
        failed(all_protocols, through)
        assert all_protocols.workq().look("dead") == 1

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_waiter_gets_a_freed_dependent(self, all_protocols: AllProtocols, through: str) -> None:
        masenko = all_protocols.masenko()
        masenko.push("q", "first")
        masenko.push("after", "second", blocked_by=[1])
        waits = [all_protocols.peer(protocol) for protocol in WAITING]
        for each in waits:
            each.ask("after", wait_s=2.0)
        done(all_protocols, through)
        assert [bool(said(each)) for each in waits] == [True, False, False]

    def test_a_dependency_is_lost_if_it_is_removed_or_expires(self, all_protocols: AllProtocols) -> None:
        workq = all_protocols.workq()
        workq.ttl_ms = 1_000
        gone = workq.push("q", b"removed")
        workq.push("q", b"ends")
        for dependency in (1, 2):
            all_protocols.masenko().push("after", dependency, blocked_by=[dependency], deadqueue="dead")
        workq.wire.send(f"delete {gone}\r\n".encode())
        assert workq.wire.line() == b"+OK"
        assert workq.look("dead") == 1
        all_protocols.dispatcher.advance(1)
        assert workq.look("dead") == 2


class TestFaktorysRecords:
    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_batch(self, all_protocols: AllProtocols, through: str) -> None:
        faktory = all_protocols.faktory()
        calls: dict[str, Any] = {
            name: {"jobtype": "called", "queue": name, "args": []} for name in ("complete", "success")
        }
        bid = faktory.call(f"BATCH NEW {json.dumps(calls)}")
        for _ in range(2):
            faktory.push("q", ["a"], custom={"bid": bid})
        faktory.call(f"BATCH COMMIT {bid}")
        done(all_protocols, through)
        failed(all_protocols, through)
        assert (faktory.look("complete"), faktory.look("success")) == (1, 0)
        done(all_protocols, through, "complete")
        all_protocols.dispatcher.advance(20)
        done(all_protocols, through)
        assert faktory.look("success") == 1
        done(all_protocols, through, "success")
        assert json.loads(faktory.call(f"BATCH STATUS {bid}"))["pending"] == 0

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_unique_job(self, all_protocols: AllProtocols, through: str) -> None:
        faktory = all_protocols.faktory()

        def push(until: str) -> bool:
            try:
                faktory.push("q", [until], custom={"unique_for": 9_000, "unique_until": until})
            except Refused as why:
                return "NOTUNIQUE" not in str(why)
            return True

        for until, free in (("success", [False, False, True]), ("start", [False, True, True])):
            worker = all_protocols.peer(through)
            assert push(until)
            found = [push(until)]
            got = fetched(worker)
            found.append(push(until))
            worker.succeed(got.ident)
            found.append(push(until) or until == "start")
            assert found == free
            faktory.call("FLUSH")

    @pytest.mark.parametrize("through", PROTOCOLS)
    def test_a_track(self, all_protocols: AllProtocols, through: str) -> None:
        faktory, worker = all_protocols.faktory(), all_protocols.peer(through)
        jid = faktory.push("q", ["a"], custom={"track": 1})

        def state() -> Any:
            return json.loads(faktory.call(f"TRACK GET {jid}"))["state"]

        seen = [state()]
        got = fetched(worker)
        seen.append(state())
        worker.fail(got.ident)
        seen.append(state())
        all_protocols.dispatcher.advance(20)
        worker.succeed(fetched(worker).ident)
        assert [*seen, state()] == ["enqueued", "working", "failed", "success"]

    @pytest.mark.parametrize(
        ("by", "through"), [pair for pair in PAIRS if PEERS[pair[0]].backs_off and not PEERS[pair[1]].says_when]
    )
    def test_mutate_and_info_cover_jobs_of_all_protocols(
        self, all_protocols: AllProtocols, by: str, through: str
    ) -> None:
        """Failed Workq and qless jobs are ready again at once, as is a job that a qless worker gives back. Failed for
        good, they are in none of Faktory's sets."""
        faktory = all_protocols.faktory()
        all_protocols.peer(by).push("q", ["needle"])
        assert _sets(faktory) == (1, 0, 0, 0)
        worker = all_protocols.peer(through)
        got = fetched(worker)
        assert _sets(faktory) == (0, 1, 0, 0)
        worker.fail(got.ident)
        assert _sets(faktory) == (0, 0, 1, 0)
        _mutate(faktory, "requeue", "retries", regexp="*nothing*")
        assert _sets(faktory) == (0, 0, 1, 0)
        _mutate(faktory, "requeue", "retries", regexp="*needle*")
        assert _sets(faktory) == (1, 0, 0, 0)
        failed(all_protocols, through)
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
    """Requests of all protocols wait in one line (model.md section 8)."""

    @pytest.mark.parametrize("order", list(itertools.permutations(WAITING)))
    def test_waiters_are_served_in_order_of_arrival(self, all_protocols: AllProtocols, order: tuple[str, ...]) -> None:
        waits = [all_protocols.peer(protocol) for protocol in order]
        for each in waits:
            each.ask("other", "q", wait_s=2.0)
        for n in range(len(waits)):
            all_protocols.peer(order[-1 - n]).push("q", [n])
            assert [bool(said(each)) for each in waits] == [i <= n for i in range(len(waits))]

    def test_waiters_that_left_are_passed_over(self, all_protocols: AllProtocols) -> None:
        waits = [all_protocols.peer(protocol) for protocol in (*WAITING, *WAITING)]
        for each in waits:
            each.ask("q", wait_s=2.0)
        for each in waits[:-1]:
            each.close()
        all_protocols.masenko().push("q", 1)
        assert said(waits[-1])
        assert len(all_protocols.dispatcher.waits) == 0

    @pytest.mark.parametrize("by", PROTOCOLS)
    def test_a_pause_applies_to_all_protocols(self, all_protocols: AllProtocols, by: str) -> None:
        faktory, waits = all_protocols.faktory(), [all_protocols.peer(protocol) for protocol in WAITING]
        all_protocols.peer(by).push("q", ["known"])
        faktory.call("QUEUE PAUSE q")
        for each in waits:
            each.ask("q", wait_s=2.0)
        all_protocols.peer(by).push("q", ["more"])
        assert not any(said(each) for each in waits)
        assert all_protocols.qless().fetch("q") is None
        faktory.call("QUEUE RESUME q")
        assert [bool(said(each)) for each in waits] == [True, True, False]
        all_protocols.dispatcher.advance(2)
        assert said(waits[-1])

    @pytest.mark.parametrize("by", PROTOCOLS)
    def test_waiters_keep_waiting_after_a_flush(self, all_protocols: AllProtocols, by: str) -> None:
        waits = [all_protocols.peer(protocol) for protocol in WAITING]
        all_protocols.faktory().push("q", ["held"])
        holds = {protocol: all_protocols.peer(protocol) for protocol in PROTOCOLS}
        for protocol, peer in holds.items():
            peer.push(protocol, ["a"])
            fetched(peer, protocol)
        faktory = all_protocols.faktory()
        faktory.call("QUEUE PAUSE q")
        for each in waits:
            each.ask("q", wait_s=2.0)
        faktory.call("FLUSH")
        for _ in WAITING:
            all_protocols.peer(by).push("q", ["new"])
        assert all(said(each) for each in waits)
        for peer in holds.values():  # their leases were flushed, so closing ends no other lease
            peer.close()
        assert len(all_protocols.dispatcher.state.by_state[State.LEASED]) == len(WAITING)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_a_job_after_any_number_of_expired_jobs_is_leased(self, all_protocols: AllProtocols, protocol: str) -> None:
        faktory, peer = all_protocols.faktory(), all_protocols.peer(protocol)
        stale_listings = {"jobtype": "T", "queue": "q", "args": [], "custom": {"expires_in": 1}}
        faktory.call("PUSHB " + json.dumps([{"jid": f"stale-{n:06d}", **stale_listings} for n in range(1_200)]))
        faktory.push("q", ["fresh"])
        all_protocols.dispatcher.advance(2)
        for _ in range(1 if peer.waits else 3):  # a call removes a limited number of them
            peer.ask("q", wait_s=1.0)
            got = peer.given()
        assert got is not None and got.text == "fresh"


def test_every_wait_ends(all_protocols: AllProtocols) -> None:
    for protocol in WAITING:
        peer = all_protocols.peer(protocol)
        peer.ask("q", wait_s=3.0)
        assert peer.wire.connection.until < NEVER  # type: ignore[attr-defined]
        assert peer.given() is None

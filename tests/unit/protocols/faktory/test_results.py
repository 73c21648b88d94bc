"""RESULT, results that are kept, outcomes that are remembered, and TRACK WAIT."""

from pathlib import Path
from typing import Any

import pytest

from crossdock.engine.records import outcomes
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.model.commands.admin import Bury, Remove
from crossdock.model.states import State
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended
from tests.support.picture import picture

JID = "61a444a0-6128-41c0-8078-cc757d3bd2d8"


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> ExtendedPeer:
    return extended(dispatcher)


def done(peer: ExtendedPeer, result: Any = None, **members: Any) -> None:
    peer.push(JID, **members)
    peer.fetch()
    assert peer.call("ACK", {"jid": JID, "result": result}) == "+OK"


def number(dispatcher: PlainDispatcher) -> int:
    return next(dispatcher.state.named(JID)).number


class TestStates:
    def test_before_the_end(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        assert peer.result(JID) == {"jid": JID, "state": "unknown"}
        peer.push(JID)
        assert peer.result(JID) == {"jid": JID, "state": "waiting", "attempts": 0}
        peer.fetch()
        assert peer.result(JID) == {"jid": JID, "state": "running", "attempts": 1}
        peer.call("FAIL", {"jid": JID})
        assert peer.result(JID) == {"jid": JID, "state": "waiting", "attempts": 1}

    @pytest.mark.parametrize("result", [None, 7, "text", [1, {"a": None}], {"ü": 1.5}])
    def test_done(self, peer: ExtendedPeer, result: Any) -> None:
        done(peer, result, keep_result_s=60)
        assert peer.result(JID, 60) == {"jid": JID, "state": "done", "result": result, "attempts": 1}

    def test_done_without_a_result(self, peer: ExtendedPeer) -> None:
        peer.push(JID, keep_result_s=60)
        peer.fetch()
        peer.call("ACK", {"jid": JID})
        assert peer.result(JID) == {"jid": JID, "state": "done", "result": None, "attempts": 1}

    def test_a_result_is_kept_for_its_time(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        done(peer, [1], keep_result_s=60)
        dispatcher.advance(59.9)
        assert peer.result(JID)["state"] == "done"
        dispatcher.advance(0.1)
        assert peer.result(JID) == {"jid": JID, "state": "unknown"}
        assert not dispatcher.state.jobs

    def test_without_it_nothing_is_kept(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        done(peer, [1])
        assert not dispatcher.state.jobs
        assert peer.result(JID)["state"] == "unknown"

    def test_dead(self, peer: ExtendedPeer) -> None:
        peer.push(JID)
        peer.fetch()
        peer.call("FAIL", {"jid": JID, "errtype": "E", "message": "m", "backtrace": ["a", "b"], "final": True})
        error = {"type": "E", "message": "m", "backtrace": ["a", "b"]}
        assert peer.result(JID, 60) == {"jid": JID, "state": "dead", "error": error, "attempts": 1}

    def test_dead_without_retries(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        """The job would be gone. With `keep_result_s` it is kept as failed for that time."""
        peer.push(JID, retry=0, keep_result_s=60)
        peer.fetch()
        peer.call("FAIL", {"jid": JID, "errtype": "E", "message": "m"})
        assert peer.result(JID)["error"]["type"] == "E"
        dispatcher.advance(60.0)
        assert peer.result(JID)["state"] == "unknown"
        assert not dispatcher.state.jobs

    def test_cancelled(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID, keep_result_s=60)
        peer.fetch()
        peer.call("CANCEL", {"jids": [JID], "reason": "too late"})
        error = {"type": "cancelled", "message": "too late", "backtrace": []}
        expected = {"jid": JID, "state": "cancelled", "error": error, "attempts": 1}
        assert peer.result(JID) == expected
        assert extended(dispatcher.restarted()).result(JID) == expected
        dispatcher.advance(60.0)
        assert peer.result(JID)["state"] == "unknown"
        assert not dispatcher.state.outcomes
        assert not dispatcher.state.outcome_ends

    def test_dead_and_deleted(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID, keep_result_s=60)
        peer.fetch()
        peer.call("FAIL", {"jid": JID, "errtype": "E", "message": "m", "final": True})
        dispatcher.do(Remove("admin", "deleted", [number(dispatcher)], frozenset({State.DEAD})))
        assert peer.result(JID)["state"] == "dead"
        assert peer.result(JID)["error"] == {"type": "E", "message": "m", "backtrace": []}

    def test_a_job_without_keep_result_leaves_no_outcome(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        peer.call("CANCEL", {"jids": [JID]})
        assert peer.result(JID)["state"] == "unknown"
        assert not dispatcher.state.outcomes

    def test_outcomes_are_bounded(
        self, dispatcher: PlainDispatcher, peer: ExtendedPeer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outcomes, "AT_MOST", 2)
        jids = ["first-00", "second-0", "third-00"]
        for jid in jids:
            peer.push(jid, keep_result_s=60)
            peer.call("CANCEL", {"jids": [jid]})
        assert [peer.result(jid)["state"] for jid in jids] == ["unknown", "cancelled", "cancelled"]
        assert len(dispatcher.state.outcome_ends) == 2

    def test_the_last_outcome_of_a_jid_counts(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        for reason in ("one", "two"):
            peer.push(JID, keep_result_s=60)
            peer.call("CANCEL", {"jids": [JID], "reason": reason})
        assert peer.result(JID)["error"]["message"] == "two"
        assert len(dispatcher.state.outcome_ends) == 1

    def test_a_snapshot_has_them(self, dispatcher: PlainDispatcher, peer: ExtendedPeer, tmp_path: Path) -> None:
        done(peer, [1], keep_result_s=60, once=True, tags=["red"])
        peer.push("other-00", keep_result_s=60)
        peer.call("CANCEL", {"jids": ["other-00"]})
        peer.push("snoozed0")
        peer.fetch()
        peer.call("SNOOZE", {"jid": "snoozed0", "delay_s": 60})
        file = tmp_path / "snapshot"
        snapshot_file.write(file, dispatcher.state, 1, dispatcher.now.wall, dispatcher.now.steady)
        loaded = snapshot_file.load(file).state
        assert picture(loaded) == picture(dispatcher.state)
        after = PlainDispatcher(loaded, dispatcher.now)
        assert extended(after).result(JID)["result"] == [1]
        after.advance(60.0)
        assert not after.state.outcomes
        assert [job.jid for job in after.state.jobs.values()] == ["snoozed0"]


class TestWaiting:
    def test_the_result_comes_with_the_end(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        worker = extended(dispatcher)
        worker.push(JID, keep_result_s=60)
        assert peer.result(JID, 60) is None
        worker.fetch()
        worker.call("FAIL", {"jid": JID, "delay_s": 0})
        worker.fetch()
        assert peer.pending() is None
        worker.call("ACKB", [{"jid": JID, "result": {"a": 1}}])
        assert peer.pending() == {"jid": JID, "state": "done", "result": {"a": 1}, "attempts": 2}

    def test_a_job_that_is_not_kept(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        worker = extended(dispatcher)
        worker.push(JID)
        assert peer.result(JID, 60) is None
        worker.fetch()
        worker.call("ACK", {"jid": JID, "result": [7]})
        assert peer.pending() == {"jid": JID, "state": "done", "result": [7]}

    def test_ends_without_success(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        worker = extended(dispatcher)
        ends: list[tuple[str, Any]] = [
            ("cancelled", lambda: worker.call("CANCEL", {"jids": [JID]})),
            ("dead", lambda: worker.call("FAIL", {"jid": JID, "message": "m"})),
        ]
        for state, end in ends:
            worker.push(JID, retry=0)
            assert peer.result(JID, 60) is None
            worker.fetch()
            end()
            assert peer.pending()["state"] == state
        worker.push(JID)
        assert peer.result(JID, 60) is None
        dispatcher.do(Bury("admin", [number(dispatcher)]))
        assert peer.pending()["state"] == "dead"

    def test_the_wait_ends_first(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        assert peer.result(JID, 10) is None
        dispatcher.advance(10.0)
        assert peer.pending() == {"jid": JID, "state": "waiting", "attempts": 0}


class TestWorkq:
    def test_it_reads_results(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        done(peer, {"a": 1}, keep_result_s=60)
        workq = Peer(dispatcher, WorkqProtocol())
        assert workq.ask(f"result {JID} 0") == f'+OK 1\r\n{JID} 1 8\r\n{{"a": 1}}\r\n'.encode()

    def test_its_results_are_read(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        workq = Peer(dispatcher, WorkqProtocol())
        for result, expected in ((b"[1]", [1]), (b"text", "text"), (b"\xff", {"base64": "/w=="}), (b"", None)):
            workq.send(f"add {JID} default 1000 60000 2\r\nhi\r\n".encode())
            workq.send(b"complete %b %d\r\n%b\r\n" % (JID.encode(), len(result), result))
            assert peer.result(JID)["result"] == expected
            workq.send(f"delete {JID}\r\n".encode())

    def test_a_worker_sends_the_result_of_its_job(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        workq = Peer(dispatcher, WorkqProtocol())
        workq.send(f"run {JID} default 60000 60000 2\r\nhi\r\n".encode())
        [found] = peer.fetch()
        assert (found["args"], found["keep_result"]) == (["hi"], True)
        peer.call("ACK", {"jid": JID, "result": [1]})
        assert workq.take() == f"+OK 1\r\n{JID} 1 3\r\n[1]\r\n".encode()


class TestTrackWait:
    def test_it_returns_each_change(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        worker = extended(dispatcher)
        worker.push(JID, custom={"track": 1})
        seen = [peer.call("TRACK WAIT", {"jid": JID})]

        def wait() -> None:
            assert peer.call("TRACK WAIT", {"jid": JID, "after": seen[-1]["updated_at"], "wait_s": 60}) is None

        for verb, request in (
            ("FETCHB", {"queues": ["default"], "wait_s": 0}),
            ("TRACK SET", {"jid": JID, "percent": 40, "desc": "half"}),
            ("TRACK SET", {"jid": JID, "percent": 80}),
            ("SNOOZE", {"jid": JID, "delay_s": 0}),
        ):
            wait()
            worker.call(verb, request)
            seen.append(peer.pending())
        assert [(each["state"], each.get("percent")) for each in seen] == [
            ("enqueued", None),
            ("working", None),
            ("working", 40),
            ("working", 80),
            ("enqueued", 80),
        ]
        wait()
        dispatcher.advance(1.0)
        worker.fetch()
        assert peer.pending()["updated_at"] == "2026-11-15T17:55:46Z"

    def test_a_change_of_another_job_does_not_answer(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        assert peer.call("TRACK WAIT", {"jid": JID, "wait_s": 10}) is None
        worker = extended(dispatcher)
        worker.call("TRACK SET", {"jid": "other", "percent": 1})
        assert peer.pending() is None
        worker.call("TRACK SET", {"jid": JID, "percent": 1})
        assert peer.pending()["percent"] == 1

    def test_an_unknown_job(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        unknown = {"jid": JID, "state": "unknown", "updated_at": ""}
        assert peer.call("TRACK WAIT", {"jid": JID}) == unknown
        assert peer.call("TRACK WAIT", {"jid": JID, "after": "before", "wait_s": 10}) == unknown
        assert peer.call("TRACK WAIT", {"jid": JID, "wait_s": 10}) is None
        dispatcher.advance(10.0)
        assert peer.pending() == unknown

    def test_many_wait_for_one_job(self, dispatcher: PlainDispatcher) -> None:
        peers = [extended(dispatcher) for _ in range(20)]
        for each in peers:
            assert each.call("TRACK WAIT", {"jid": JID, "wait_s": 10}) is None
        extended(dispatcher).call("TRACK SET", {"jid": JID, "percent": 1})
        assert [each.pending()["percent"] for each in peers] == [1] * 20

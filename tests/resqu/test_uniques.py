"""Unique ids, deferred jobs and monitored jobs."""

import json

import pytest

from crossdock.protocols.redis.resqu import scripts
from tests.resqu.saying import P, base, job, push, script, worker
from tests.resqu.speaking import Direct, Refused


class TestUniqueIds:
    def test_a_reservation_ends_with_its_connection(self, direct: Direct) -> None:
        assert direct.say("a", "SETNX", f"{P}unique:u:state", "queued") == 1
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 0
        direct.peers.pop("a").close()
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 1

    def test_a_pushed_job_keeps_its_uid_after_the_connection_closes(self, direct: Direct) -> None:
        assert direct.say("a", "SETNX", f"{P}unique:u:state", "queued") == 1
        direct.say("a", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))
        direct.peers.pop("a").close()
        assert direct.say("b", "GET", f"{P}unique:u:state") == "queued"
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 0

    def test_a_push_with_a_uid_of_another_client_is_refused(self, direct: Direct) -> None:
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        with pytest.raises(Refused, match="the unique id 'u' is held"):
            direct.say("b", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))

    @pytest.mark.parametrize("words", [("running",), ("done", "XX"), ("running", "NX"), ("running", "XX", "GET")])
    def test_other_ways_to_set_a_state_are_refused(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match="resqu-v4:unique:u:state"):
            direct.say("a", "SET", f"{P}unique:u:state", *words)
        with pytest.raises(Refused, match="must be queued or running, not 'x'"):
            direct.say("a", "SETNX", f"{P}unique:u:state", "x")

    def test_a_deferred_job_must_have_that_uid(self, direct: Direct) -> None:
        keys = ["unique:u:state", "unique:u:deferred"]
        with pytest.raises(Refused, match="the unique id of the deferred job is not 'u'"):
            script(direct, scripts.DEFER_ADD, keys, "running", base(unique={"uid": "v", "deferrableBy": 1}))
        with pytest.raises(Refused, match="have different names"):
            script(direct, scripts.DEFER_ADD, ["unique:u:state", "unique:v:deferred"], "running", base())

    def test_a_deferred_job_survives_a_failure_and_runs_after_its_delay(self, direct: Direct) -> None:
        worker(direct)
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        direct.say("a", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        direct.say("child", "SET", f"{P}unique:u:state", "running", "XX")
        second = base(unique={"uid": "u", "deferrableBy": 5}, args=[2])
        assert script(direct, scripts.DEFER_ADD, ["unique:u:state", "unique:u:deferred"], "running", second) == 1
        assert direct.say("c", "GET", f"{P}unique:u:deferred") == second
        assert direct.say("child", "DEL", f"{P}unique:u:state", f"{P}unique:u:deferred") == 2
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert direct.say("c", "LLEN", f"{P}unassigned") == 0
        direct.dispatcher.advance(5.0)
        assert json.loads(direct.say("c", "LINDEX", f"{P}unassigned", "0"))["args"] == [2]

    def test_the_job_of_a_dead_worker_returns_and_its_uid_is_released(self, direct: Direct) -> None:
        worker(direct)
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        direct.say("a", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        direct.say("child", "SET", f"{P}unique:u:state", "running", "XX")
        direct.say("m", "SREM", f"{P}process:n:pool:p", "n~p~s~1")
        assert direct.say("m", "RPOP", f"{P}worker:n~p~s~1") == job(unique={"uid": "u"})
        assert direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1") == [job(unique={"uid": "u"})]
        worker(direct, "n~p~s~2")
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~2")
        direct.say("w", "RPOP", f"{P}worker:n~p~s~2")
        assert direct.say("a", "SETNX", f"{P}unique:u:state", "queued") == 1


class TestMonitoring:
    def status(self, direct: Direct) -> str | None:
        text = direct.say("c", "GET", f"{P}job:j1:status")
        return None if text is None else json.loads(text)["status"]

    def test_the_status_goes_from_waiting_to_finished_and_lasts_a_day(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", isMonitored=True)
        assert self.status(direct) == "waiting"
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "running"
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "finished"
        assert 86_000 < direct.say("c", "TTL", f"{P}job:j1:status") <= 86_400
        direct.dispatcher.advance(86_500.0)
        assert self.status(direct) is None

    def test_the_status_of_a_dead_job_is_failed(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", isMonitored=True, unique={"uid": "u"})
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        direct.say("child", "DEL", f"{P}unique:u:state", f"{P}unique:u:deferred")
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "failed"

    def test_a_job_that_is_not_monitored_has_no_status(self, direct: Direct) -> None:
        push(direct, "j1")
        assert self.status(direct) is None

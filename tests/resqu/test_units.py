"""Batch pools of Resqu's own server."""

import json

import pytest

from crossdock.protocols.redis.resqu import scripts
from tests.resqu.saying import BATCH, P, commit, job, push, script, work_off, worker
from tests.resqu.speaking import Direct, Refused


class TestUnits:
    def test_clearing_a_unit_moves_its_batches_to_the_others(self, direct: Direct) -> None:
        units = f"{P}pool:b:unit_queues"
        for unit, score in (("n-0", 2), ("n-1", 1), ("n-2", 0)):
            direct.say("m", "ZADD", units, str(score), f"pool:b:{unit}:queues")
        direct.say("m", "LPUSH", f"{P}pool:b:n-0:queues", "x", "y")
        keys = ["pool:b:n-0:queues", "pool:b:unit_queues"]
        assert script(direct, scripts.UNIT_CLEAR, keys, "pool:b:n-0:queues") is None
        assert direct.say("m", "ZRANGE", units, "0", "-1", "WITHSCORES") == [
            "pool:b:n-2:queues", "1", "pool:b:n-1:queues", "2",
        ]  # fmt: skip
        assert direct.say("m", "LRANGE", f"{P}pool:b:n-2:queues", "0", "-1") == ["x"]
        assert direct.say("m", "EXISTS", f"{P}pool:b:n-0:queues") == 0

    def test_a_source_has_one_active_batch_at_a_time(self, direct: Direct) -> None:
        """The second batch is committed again when a worker has finished the first."""
        worker(direct, "n~b~0~1", "b")
        direct.say("m", "ZADD", f"{P}pool:b:unit_queues", "0", "pool:b:n-0:queues")
        for batch in (BATCH, "s:Import:00000002"):
            commit(direct, batch, 2)
            assert direct.say("a", "BRPOPLPUSH", f"{P}committed", f"{P}allocator:n:batch-1", "3") == batch
            assert direct.say("a", "TTL", f"{P}committed:{batch}") == -1
            keys = ["pool:b", "pool:b:backlog:s", "pool:b:n-0:queues", "pool:b:unit_queues"]
            waits = script(direct, scripts.BATCH_ASSIGN, keys, "s", batch, "pool:b:n-0:queues", "n")
            assert waits == (None if batch == BATCH else 1)
            assert direct.say("a", "LREM", f"{P}allocator:n:batch-1", "1", batch) == 1
        assert direct.say("w", "RPOPLPUSH", f"{P}committed:s:Import:00000002", f"{P}worker:n~b~0~1") is None
        assert work_off(direct, "n~b~0~1", BATCH) == [f"{BATCH}-1", f"{BATCH}-2"]
        keys = ["pool:b:n-0:queues", "pool:b:unit_queues", "pool:b", "pool:b:backlog:s", "committed"]
        assert script(direct, scripts.BATCH_REMOVE, keys, BATCH, "s", "pool:b:n-0:queues") is None
        assert direct.say("a", "LRANGE", f"{P}committed", "0", "-1") == ["s:Import:00000002"]
        assert direct.say("a", "HGETALL", f"{P}pool:b") == []

    def test_a_batch_counts_towards_the_limit_of_keys(self, direct: Direct) -> None:
        """A refused commit or assignment changes nothing and can be repeated."""
        keys = ["pool:b", "pool:b:backlog:s", "pool:b:n-0:queues", "pool:b:unit_queues"]
        assign = (scripts.BATCH_ASSIGN, keys, "s", BATCH, "pool:b:n-0:queues", "n")
        limit, direct.protocol.keys_bytes = direct.protocol.keys_bytes, 1
        with pytest.raises(Refused, match="OOM the key space"):
            commit(direct, BATCH, 2)
        direct.protocol.keys_bytes = limit
        script(direct, scripts.BATCH_COMMIT, ["committed", f"committed:{BATCH}", f"uncommitted:{BATCH}"], BATCH)
        direct.protocol.keys_bytes = 1
        with pytest.raises(Refused, match="OOM the key space"):
            script(direct, *assign)
        direct.protocol.keys_bytes = limit
        assert script(direct, *assign) is None

    def test_a_job_of_a_batch_does_not_end_the_job_that_holds_its_uid(self, direct: Direct) -> None:
        """Its payload has the unique id of a running job, and the child reports by that id."""
        worker(direct, "n~p~s~1")
        worker(direct, "n~b~0~1", "b")
        assert direct.say("c", "SETNX", f"{P}unique:u:state", "queued") == 1
        push(direct, "holder", unique={"uid": "u"})
        direct.say("a", "BRPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1", "3")
        key = f"uncommitted:{BATCH}"
        pushed = job("staged", name="Import", unique={"uid": "u"})
        assert script(direct, scripts.BATCH_INIT, [key], pushed) == 1
        assert script(direct, scripts.BATCH_COMMIT, ["committed", f"committed:{BATCH}", key], BATCH) == 1
        keys = ["pool:b", "pool:b:backlog:s", "pool:b:n-0:queues", "pool:b:unit_queues"]
        script(direct, scripts.BATCH_ASSIGN, keys, "s", BATCH, "pool:b:n-0:queues", "n")
        assert direct.say("w", "LRANGE", f"{P}committed:{BATCH}", "0", "-1") == [pushed], (
            "the pushed bytes are unchanged"
        )
        text = direct.say("w", "RPOPLPUSH", f"{P}committed:{BATCH}", f"{P}worker:n~b~0~1")
        uid = json.loads(text)["unique"]["uid"]
        assert uid.startswith("crossdock:")
        assert json.loads(text)["id"] == "staged"
        assert direct.say("child", "DEL", f"{P}unique:{uid}:state", f"{P}unique:{uid}:deferred") == 1
        assert direct.say("w", "RPOP", f"{P}worker:n~b~0~1") == text
        assert direct.say("c", "GET", f"{P}unique:u:state") == "running", "the status of the other job is unchanged"

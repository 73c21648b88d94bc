"""Resqu on the Redis door, command by command: what the recordings do not show."""

import json
from typing import Any

import pytest

from crossdock.model.resqu import SetMapping
from crossdock.wire.redis.door import RedisDoor
from crossdock.wire.redis.resqu import entries, hashes, locks, plans
from crossdock.wire.redis.resqu.service import Resqu
from crossdock.wire.redis.scripts import sha1
from tests.resqu.speaking import Direct, Refused

P = "resqu-v4:"
SHA = {dialect: sha for sha, dialect in hashes.KNOWN.items()}
BATCH = "s:Import:54e3f968"


def job(ident: str = "j1", **members: Any) -> str:
    return json.dumps({"class": "C", "sourceId": "s", "name": "N", **members, "id": ident, "queue_time": 1794765301.5})


def base(**members: Any) -> str:
    return json.dumps({"class": "C", "sourceId": "s", "name": "N", **members})


@pytest.fixture
def direct() -> Direct:
    return Direct()


def script(direct: Direct, name: str, keys: list[str], *args: str, connection: str = "c") -> Any:
    return direct.say(connection, "EVALSHA", SHA[name], str(len(keys)), *(P + key for key in keys), *args)


def push(direct: Direct, *idents: str, **members: Any) -> None:
    for ident in idents:
        direct.say("c", "LPUSH", f"{P}unassigned", job(ident, **members))


def test_a_repeated_push_adds_nothing(direct: Direct) -> None:
    push(direct, "j1", "j1")
    assert direct.say("c", "LLEN", f"{P}unassigned") == 1
    worker(direct)
    assert direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1") == job("j1")
    assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") == job("j1")
    push(direct, "j1")
    assert direct.say("c", "LLEN", f"{P}unassigned") == 0, "the job was done"


def test_lists_show_the_bytes_that_were_pushed_the_newest_first(direct: Direct) -> None:
    texts = [job("j1"), '{ "class":"C","sourceId":"s","name":"N","id":"j2","queue_time":2 }', job("j3", x="\u017e")]
    for text in texts:
        direct.say("c", "LPUSH", f"{P}unassigned", text)
    assert direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1") == texts[::-1]
    assert direct.say("c", "LINDEX", f"{P}unassigned", "-1") == texts[0]
    assert direct.say("c", "TYPE", f"{P}unassigned") == "list"


def test_a_job_without_a_name_gets_its_class(direct: Direct) -> None:
    direct.say("c", "LPUSH", f"{P}unassigned", '{"class":"C","sourceId":"s","id":"j1","queue_time":1}')
    shown = json.loads(direct.say("c", "LINDEX", f"{P}unassigned", "0"))
    assert shown == {"class": "C", "sourceId": "s", "id": "j1", "queue_time": 1, "name": "C"}


class TestTheMapping:
    @pytest.fixture
    def direct(self) -> Direct:
        direct = Direct()
        static = {"default": {"default": "main", "Mail": "fast"}, "shop": {"Mail": "shop-mail"}}
        direct.desk.do(SetMapping(static, {"default": {"default": "mass"}}))
        return direct

    @pytest.mark.parametrize(
        ("source", "name", "pool"),
        [("shop", "Mail", "shop-mail"), ("shop", "Other", "main"), ("x", "Mail", "fast"), ("x", "y", "main")],
    )
    def test_a_job_goes_to_its_pool_at_once(self, direct: Direct, source: str, name: str, pool: str) -> None:
        text = job("j1", sourceId=source, name=name)
        assert direct.say("c", "LPUSH", f"{P}unassigned", text) == 1
        assert direct.say("c", "LLEN", f"{P}unassigned") == 0
        assert direct.say("c", "LRANGE", f"{P}static:queue:{pool}", "0", "-1") == [text]

    def test_a_batch_reaches_the_units_of_its_pool(self, direct: Direct) -> None:
        worker(direct, "n~mass~0~1", "mass")
        for unit in ("n-0", "n-1"):
            direct.say("m", "ZINCRBY", f"{P}pool:mass:unit_queues", "0", f"pool:mass:{unit}:queues")
        commit(direct, BATCH, 2)
        commit(direct, "s:Import:00000002", 1)
        assert direct.say("w", "LRANGE", f"{P}pool:mass:n-0:queues", "0", "-1") == [BATCH]
        assert direct.say("w", "HGETALL", f"{P}pool:mass") == ["s", "n"]
        assert direct.say("w", "LRANGE", f"{P}pool:mass:backlog:s", "0", "-1") == ["s:Import:00000002"]
        assert work_off(direct, "n~mass~0~1", BATCH) == [f"{BATCH}-1", f"{BATCH}-2"]

    def test_a_batch_is_worked_in_its_pool_by_any_worker(self, direct: Direct) -> None:
        worker(direct)
        commit(direct, BATCH, 2)
        assert direct.say("c", "LLEN", f"{P}committed") == 0
        for ident in (f"{BATCH}-1", f"{BATCH}-2"):
            text = direct.say("w", "RPOPLPUSH", f"{P}static:queue:mass", f"{P}worker:n~p~s~1")
            assert json.loads(text)["id"] == ident
            direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert direct.say("c", "EXISTS", f"{P}committed:{BATCH}") == 0


def worker(direct: Direct, name: str = "n~p~s~1", pool: str = "p") -> None:
    assert direct.say("w", "SADD", f"{P}process:n:pool:{pool}", name) == 1


def commit(direct: Direct, batch: str, jobs: int) -> None:
    key = f"uncommitted:{batch}"
    assert script(direct, hashes.BATCH_INIT, [key], job(f"{batch}-1", name="Import")) == 1
    for number in range(2, jobs + 1):
        assert direct.say("c", "LPUSHX", P + key, job(f"{batch}-{number}", name="Import")) == number
    assert direct.say("c", "EXPIRE", P + key, "600") == 1
    assert direct.say("c", "TTL", P + key) == 600
    assert script(direct, hashes.BATCH_COMMIT, ["committed", f"committed:{batch}", key], batch) >= 1


def work_off(direct: Direct, name: str, batch: str) -> list[str]:
    done = []
    while (text := direct.say("w", "RPOPLPUSH", f"{P}committed:{batch}", f"{P}worker:{name}")) is not None:
        done.append(json.loads(text)["id"])
        assert direct.say("w", "RPOP", f"{P}worker:{name}") == text
    return done


class TestUniqueIds:
    def test_a_reservation_ends_with_its_connection(self, direct: Direct) -> None:
        assert direct.say("a", "SETNX", f"{P}unique:u:state", "queued") == 1
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 0
        direct.peers.pop("a").close()
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 1

    def test_a_push_keeps_it_beyond_the_connection(self, direct: Direct) -> None:
        assert direct.say("a", "SETNX", f"{P}unique:u:state", "queued") == 1
        direct.say("a", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))
        direct.peers.pop("a").close()
        assert direct.say("b", "GET", f"{P}unique:u:state") == "queued"
        assert direct.say("b", "SETNX", f"{P}unique:u:state", "queued") == 0

    def test_a_push_of_a_uid_that_somebody_else_has_is_refused(self, direct: Direct) -> None:
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        with pytest.raises(Refused, match="the unique id 'u' is taken"):
            direct.say("b", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))

    @pytest.mark.parametrize("words", [("running",), ("done", "XX"), ("running", "NX"), ("running", "XX", "GET")])
    def test_a_state_is_set_as_the_helper_does_it(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match="resqu-v4:unique:u:state"):
            direct.say("a", "SET", f"{P}unique:u:state", *words)
        with pytest.raises(Refused, match="is queued or running, not 'x'"):
            direct.say("a", "SETNX", f"{P}unique:u:state", "x")

    def test_a_deferred_job_must_have_that_uid(self, direct: Direct) -> None:
        keys = ["unique:u:state", "unique:u:deferred"]
        with pytest.raises(Refused, match="does not have the unique id 'u'"):
            script(direct, hashes.DEFER_ADD, keys, "running", base(unique={"uid": "v", "deferrableBy": 1}))
        with pytest.raises(Refused, match="do not belong together"):
            script(direct, hashes.DEFER_ADD, ["unique:u:state", "unique:v:deferred"], "running", base())

    def test_what_is_deferred_outlives_a_failure_and_comes_after_its_delay(self, direct: Direct) -> None:
        worker(direct)
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        direct.say("a", "LPUSH", f"{P}unassigned", job(unique={"uid": "u"}))
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        direct.say("child", "SET", f"{P}unique:u:state", "running", "XX")
        second = base(unique={"uid": "u", "deferrableBy": 5}, args=[2])
        assert script(direct, hashes.DEFER_ADD, ["unique:u:state", "unique:u:deferred"], "running", second) == 1
        assert direct.say("c", "GET", f"{P}unique:u:deferred") == second
        assert direct.say("child", "DEL", f"{P}unique:u:state", f"{P}unique:u:deferred") == 2
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert direct.say("c", "LLEN", f"{P}unassigned") == 0
        direct.desk.advance(5.0)
        assert json.loads(direct.say("c", "LINDEX", f"{P}unassigned", "0"))["args"] == [2]

    def test_a_dead_worker_loses_nothing_and_its_uid_is_not_stuck(self, direct: Direct) -> None:
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


class TestBuffers:
    def test_who_was_not_told_of_his_job_gets_it_again(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", "j2")
        for _ in range(2):
            assert direct.say("w", "BRPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1", "3") == job("j1")
        assert direct.say("w", "LRANGE", f"{P}worker:n~p~s~1", "0", "-1") == [job("j1")]
        assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") == job("j1")
        assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") is None

    def test_an_allocator_puts_jobs_on_a_pool_and_back(self, direct: Direct) -> None:
        push(direct, "j1", "j2", "j3")
        mine = f"{P}allocator:n:job-1"
        assert direct.say("a", "BRPOPLPUSH", f"{P}unassigned", mine, "3") == job("j1")
        assert direct.say("a", "LINDEX", mine, "-1") == job("j1")
        assert direct.say("a", "RPOPLPUSH", mine, f"{P}static:queue:p") == job("j1")
        assert direct.say("a", "BRPOPLPUSH", f"{P}unassigned", mine, "3") == job("j2")
        assert direct.say("m", "RPOPLPUSH", mine, f"{P}unassigned") == job("j2")
        assert direct.say("a", "LRANGE", f"{P}unassigned", "0", "-1") == [job("j2"), job("j3")]
        assert direct.say("a", "BRPOPLPUSH", f"{P}unassigned", mine, "3") == job("j3")
        assert direct.say("a", "LREM", mine, "1", job("j3")) == 1
        assert direct.say("a", "LREM", mine, "1", job("j3")) == 0
        assert len(direct.desk.memory.jobs) == 2

    def test_who_waits_is_served_and_who_waits_for_nothing_is_told(self, direct: Direct) -> None:
        direct.ask("a", "BRPOPLPUSH", f"{P}unassigned", f"{P}allocator:n:job-1", "3")
        push(direct, "j1")
        assert direct.hear("a") == job("j1")
        direct.ask("w", "BRPOPLPUSH", f"{P}static:queue:p", f"{P}worker:n~p~s~1", "3")
        direct.desk.advance(3.0)
        assert direct.peers["w"].take() == b"*-1\r\n"

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            ("unassigned", "static:queue:p"),
            ("static:queue:p", "allocator:n:job-1"),
            ("worker:n~p~s~1", "unassigned"),
            ("delayed:5", "unassigned"),
            ("unassigned", "committed"),
            ("committed", "unassigned"),
        ],
    )
    def test_nothing_else_is_moved(self, direct: Direct, source: str, target: str) -> None:
        with pytest.raises(Refused, match=r"ERR nothing is moved from 'resqu-v4:.*' to 'resqu-v4:.*'"):
            direct.say("c", "RPOPLPUSH", P + source, P + target)


class TestDelayedJobs:
    def test_it_comes_in_its_second_with_an_id_of_its_own(self, direct: Direct) -> None:
        at = int(direct.desk.now.wall) + 60
        assert direct.say("c", "RPUSH", f"{P}delayed:{at}", base(args=[1])) == 1
        assert direct.say("c", "ZADD", f"{P}delayed_queue_schedule", str(at), str(at)) == 1
        assert direct.say("c", "RPUSH", f"{P}delayed:{at}", base(args=[2])) == 2
        assert direct.say("c", "ZADD", f"{P}delayed_queue_schedule", str(at), str(at)) == 0
        assert direct.say("c", "LRANGE", f"{P}delayed:{at}", "0", "-1") == [base(args=[1]), base(args=[2])]
        assert direct.say("c", "ZRANGE", f"{P}delayed_queue_schedule", "0", "-1") == [str(at)]
        assert direct.say("s", "ZRANGEBYSCORE", f"{P}delayed_queue_schedule", "-inf", str(at), "LIMIT", "0", "1") == []
        assert direct.say("c", "ZRANGEBYSCORE", f"{P}delayed_queue_schedule", "-inf", "+inf") == [str(at)]
        direct.desk.advance(60.0)
        first, second = map(json.loads, reversed(direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1")))
        assert (first["args"], second["args"]) == ([1], [2])
        assert len(first["id"]) == 32 and first["queue_time"] == at

    def test_one_of_the_past_comes_at_once(self, direct: Direct) -> None:
        assert direct.say("c", "RPUSH", f"{P}delayed:5", base()) == 1
        assert direct.say("c", "LLEN", f"{P}unassigned") == 1

    def test_a_repeat_is_known_by_its_uid(self, direct: Direct) -> None:
        at = int(direct.desk.now.wall) + 60
        direct.say("a", "SETNX", f"{P}unique:u:state", "queued")
        for connection in ("a", "b"):
            assert direct.say(connection, "RPUSH", f"{P}delayed:{at}", base(unique={"uid": "u"})) == 1

    @pytest.mark.parametrize("second", ["x", "1.5", "99999999999999"])
    def test_a_key_that_names_no_second(self, direct: Direct, second: str) -> None:
        with pytest.raises(Refused, match="does not end in a second"):
            direct.say("c", "RPUSH", f"{P}delayed:{second}", base())


class TestPlans:
    def insert(self, direct: Direct, at: int, interval: str = "P0Y0M0DT0H0M100S", **members: Any) -> Any:
        plan = base(**members, id="s_p", nextRun=at, recurrenceInterval=interval)
        keys = ["plan:s_p", "plan_schedule", f"plan_schedule:{at}", "plan_list:s"]
        return script(direct, hashes.PLAN_INSERT, keys, plan, str(at), "s_p")

    def test_it_comes_again_and_shows_its_next_run(self, direct: Direct) -> None:
        at = int(direct.desk.now.wall) + 10
        assert self.insert(direct, at) == 1
        assert self.insert(direct, at) is None
        assert direct.say("c", "LRANGE", f"{P}plan_schedule:{at}", "0", "-1") == ["s_p"]
        direct.desk.advance(115.0)
        assert direct.say("c", "LLEN", f"{P}unassigned") == 2
        shown = json.loads(direct.say("c", "GET", f"{P}plan:s_p"))
        assert shown["nextRun"] == at + 200
        assert direct.say("c", "ZRANGE", f"{P}plan_schedule", "0", "-1") == [str(at + 200)]
        texts = [json.loads(text) for text in direct.say("c", "LRANGE", f"{P}unassigned", "0", "-1")]
        assert all(text.keys() == {"class", "sourceId", "name", "id", "queue_time"} for text in texts)

    def test_one_whose_uid_is_taken_is_left_out(self, direct: Direct) -> None:
        at = int(direct.desk.now.wall) + 10
        self.insert(direct, at, "PT10S", unique={"uid": "u"})
        direct.desk.advance(45.0)
        assert direct.say("c", "LLEN", f"{P}unassigned") == 1

    @pytest.mark.parametrize("interval", ["P0Y0M0DT0H0M0S", "soon", "P1X", ""])
    def test_a_wrong_interval_is_refused(self, direct: Direct, interval: str) -> None:
        with pytest.raises(Refused, match="ERR invalid job: "):
            self.insert(direct, 1_800_000_000, interval)

    def test_keys_and_arguments_must_agree(self, direct: Direct) -> None:
        plan = base(id="s_p", nextRun=5, recurrenceInterval="PT1S")
        keys = ["plan:s_q", "plan_schedule", "plan_schedule:5", "plan_list:s"]
        with pytest.raises(Refused, match="name different plans"):
            script(direct, hashes.PLAN_INSERT, keys, plan, "5", "s_p")
        with pytest.raises(Refused, match="the plan says it is 's_p' of 's', its keys 's_q' of 's'"):
            script(direct, hashes.PLAN_INSERT, keys, plan, "5", "s_q")

    def test_the_scheduler_may_move_it_and_write_it_back(self, direct: Direct) -> None:
        at = int(direct.desk.now.wall) + 10
        self.insert(direct, at)
        keys = ["plan_schedule", f"plan_schedule:{at}", f"plan_schedule:{at + 7}"]
        assert script(direct, hashes.PLAN_MOVE, keys, str(at + 7), "s_p") is None
        assert json.loads(direct.say("c", "GET", f"{P}plan:s_p"))["nextRun"] == at + 7
        text = base(args=["new"], id="s_p", nextRun=at, recurrenceInterval="PT50S")
        assert direct.say("c", "SET", f"{P}plan:s_p", text) == "OK"
        direct.desk.advance(17.0)
        assert json.loads(direct.say("c", "LINDEX", f"{P}unassigned", "0"))["args"] == ["new"]
        with pytest.raises(Refused, match="there is no plan"):
            direct.say("c", "SET", f"{P}plan:s_other", text)


class TestUnits:
    def test_a_unit_that_is_no_more_leaves_its_batches_to_the_others(self, direct: Direct) -> None:
        units = f"{P}pool:b:unit_queues"
        for unit, score in (("n-0", 2), ("n-1", 1), ("n-2", 0)):
            direct.say("m", "ZADD", units, str(score), f"pool:b:{unit}:queues")
        direct.say("m", "LPUSH", f"{P}pool:b:n-0:queues", "x", "y")
        keys = ["pool:b:n-0:queues", "pool:b:unit_queues"]
        assert script(direct, hashes.UNIT_CLEAR, keys, "pool:b:n-0:queues") is None
        assert direct.say("m", "ZRANGE", units, "0", "-1", "WITHSCORES") == [
            "pool:b:n-2:queues", "1", "pool:b:n-1:queues", "2",
        ]  # fmt: skip
        assert direct.say("m", "LRANGE", f"{P}pool:b:n-2:queues", "0", "-1") == ["x"]
        assert direct.say("m", "EXISTS", f"{P}pool:b:n-0:queues") == 0

    def test_one_batch_of_a_source_at_a_time(self, direct: Direct) -> None:
        """As an allocator and a worker do it: the second one is committed again when the first is worked off."""
        worker(direct, "n~b~0~1", "b")
        direct.say("m", "ZADD", f"{P}pool:b:unit_queues", "0", "pool:b:n-0:queues")
        for batch in (BATCH, "s:Import:00000002"):
            commit(direct, batch, 2)
            assert direct.say("a", "BRPOPLPUSH", f"{P}committed", f"{P}allocator:n:batch-1", "3") == batch
            assert direct.say("a", "TTL", f"{P}committed:{batch}") == -1
            keys = ["pool:b", "pool:b:backlog:s", "pool:b:n-0:queues", "pool:b:unit_queues"]
            waits = script(direct, hashes.BATCH_ASSIGN, keys, "s", batch, "pool:b:n-0:queues", "n")
            assert waits == (None if batch == BATCH else 1)
            assert direct.say("a", "LREM", f"{P}allocator:n:batch-1", "1", batch) == 1
        assert direct.say("w", "RPOPLPUSH", f"{P}committed:s:Import:00000002", f"{P}worker:n~b~0~1") is None
        assert work_off(direct, "n~b~0~1", BATCH) == [f"{BATCH}-1", f"{BATCH}-2"]
        keys = ["pool:b:n-0:queues", "pool:b:unit_queues", "pool:b", "pool:b:backlog:s", "committed"]
        assert script(direct, hashes.BATCH_REMOVE, keys, BATCH, "s", "pool:b:n-0:queues") is None
        assert direct.say("a", "LRANGE", f"{P}committed", "0", "-1") == ["s:Import:00000002"]
        assert direct.say("a", "HGETALL", f"{P}pool:b") == []


class TestMonitoring:
    def status(self, direct: Direct) -> str | None:
        text = direct.say("c", "GET", f"{P}job:j1:status")
        return None if text is None else json.loads(text)["status"]

    def test_from_waiting_to_finished_for_a_day(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", isMonitored=True)
        assert self.status(direct) == "waiting"
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "running"
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "finished"
        assert 86_000 < direct.say("c", "TTL", f"{P}job:j1:status") <= 86_400
        direct.desk.advance(86_500.0)
        assert self.status(direct) is None

    def test_failed_for_good(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", isMonitored=True, unique={"uid": "u"})
        direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1")
        direct.say("child", "DEL", f"{P}unique:u:state", f"{P}unique:u:deferred")
        direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert self.status(direct) == "failed"

    def test_a_job_that_is_not_monitored_has_none(self, direct: Direct) -> None:
        push(direct, "j1")
        assert self.status(direct) is None


class TestScripts:
    TEXT = b"return 'a text of the test'\n"

    @pytest.fixture
    def direct(self) -> Direct:
        resqu = Resqu(known={sha1(self.TEXT): hashes.BATCH_INIT})
        return Direct(door=RedisDoor(libraries=(resqu.library,), views=resqu.views))

    @pytest.mark.parametrize("text", [TEXT, TEXT.replace(b"\n", b"\r\n")])
    def test_eval_by_the_hash_of_a_text(self, direct: Direct, text: bytes) -> None:
        key = f"{P}uncommitted:{BATCH}"
        assert direct.say("c", "EVAL", text.decode(), "1", key, job()) == 1
        assert direct.say("c", "eval", text.decode(), "1", key, job("other")) is None
        assert direct.say("c", "LLEN", key) == 1

    def test_evalsha_needs_no_load_and_what_is_not_in_the_table_is_unknown(self, direct: Direct) -> None:
        sha = sha1(self.TEXT)
        assert direct.say("c", "SCRIPT", "EXISTS", sha, SHA[hashes.BATCH_INIT]) == [1, 0]
        assert direct.say("c", "EVALSHA", sha, "1", f"{P}uncommitted:{BATCH}", job()) == 1
        with pytest.raises(Refused, match="NOSCRIPT"):
            direct.say("c", "EVALSHA", SHA[hashes.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", job())
        other = "return 1"
        with pytest.raises(Refused, match=f"unknown script {sha1(other.encode())}"):
            direct.say("c", "EVAL", other, "0")

    def test_wrong_keys_and_counts_are_named(self, direct: Direct) -> None:
        sha = sha1(self.TEXT)
        with pytest.raises(Refused, match="batch-init takes 1 keys and 1 arguments, not 2 and 0"):
            direct.say("c", "EVALSHA", sha, "2", f"{P}uncommitted:x", "y")
        for key in (f"{P}unassigned", "uncommitted:x", f"{P}nothing"):
            with pytest.raises(Refused, match=f"batch-init: '{key}' is not a key of the kind it takes there"):
                direct.say("c", "EVALSHA", sha, "1", key, job())


class TestWrongInput:
    @pytest.mark.parametrize("words", [("GET",), ("LPUSH", "x"), ("DEL",), ("HGETALL",), ("TTL",)])
    def test_unknown_keys_under_the_prefix(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match="ERR unknown key 'resqu-v4:nothing': Resqu V4 has none of that name"):
            direct.say("c", words[0], f"{P}nothing", *words[1:])

    @pytest.mark.parametrize("prefix", ["resqu-v5", "resque-v3"])
    def test_other_versions(self, direct: Direct, prefix: str) -> None:
        for words in (("LPUSH", f"{prefix}:unassigned", "x"), ("GET", f"{prefix}:x"), ("EXISTS", f"{prefix}:x")):
            with pytest.raises(Refused, match=f"ERR '{prefix}' is not served"):
                direct.say("c", *words)

    @pytest.mark.parametrize(
        "words",
        [
            ("GET", "unassigned"),
            ("LLEN", "unique:u:state"),
            ("SMEMBERS", "plan:s_p"),
            ("HGET", "unassigned", "x"),
        ],
    )
    def test_the_wrong_kind_of_value(self, direct: Direct, words: tuple[str, ...]) -> None:
        push(direct, "j1")
        direct.say("c", "SETNX", f"{P}unique:u:state", "queued")
        TestPlans().insert(direct, 1_800_000_000)
        with pytest.raises(Refused, match="WRONGTYPE"):
            direct.say("c", words[0], P + words[1], *words[2:])

    @pytest.mark.parametrize(
        "words",
        [
            ("RPUSH", "unassigned", "x"),
            ("LPOP", "unassigned"),
            ("DEL", "unassigned"),
            ("EXPIRE", "unassigned", "5"),
            ("LPUSH", "static:queue:p", "x"),
            ("SADD", "plan_list:s", "x"),
            ("ZADD", "plan_schedule", "1", "1"),
            ("SET", "job:j:status", "x"),
            ("LPUSH", "worker:n~p~s~1", "x"),
        ],
    )
    def test_what_would_write_there_otherwise_is_refused(self, direct: Direct, words: tuple[str, ...]) -> None:
        with pytest.raises(Refused, match=f"ERR {words[0]} is not supported on 'resqu-v4:{words[1]}'"):
            direct.say("c", words[0], P + words[1], *words[2:])

    def test_names_that_are_no_text(self, direct: Direct) -> None:
        peer = direct.peer("c")
        for verb, rest in ((b"GET", b""), (b"SETNX", b"$6\r\nqueued\r\n")):
            key = b"resqu-v4:unique:\xff:state"
            peer.send(b"*%d\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % (2 + bool(rest), len(verb), verb, len(key), key, rest))
            assert peer.take().startswith(b"-ERR names must be UTF-8")

    def test_empty_and_invalid_payloads_leave_nothing(self, direct: Direct) -> None:
        for text in ("", "not json", "{}", '{"class":"C"}'):
            for words in (
                ("LPUSH", f"{P}unassigned", text),
                ("RPUSH", f"{P}delayed:1900000000", text),
                ("LPUSHX", f"{P}uncommitted:{BATCH}", text),
                ("EVALSHA", SHA[hashes.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", text),
            ):
                with pytest.raises(Refused, match="ERR invalid job: "):
                    direct.say("c", *words)
        assert not direct.desk.memory.jobs


class TestLimits:
    def test_nothing_is_taken_in_while_there_is_no_room(self, direct: Direct) -> None:
        direct.desk.full = "the disk is full"
        for words in (
            ("LPUSH", f"{P}unassigned", job()),
            ("RPUSH", f"{P}delayed:1900000000", base()),
            ("LPUSHX", f"{P}uncommitted:{BATCH}", job()),
            ("EVALSHA", SHA[hashes.BATCH_INIT], "1", f"{P}uncommitted:{BATCH}", job()),
            ("SADD", f"{P}process:n:pool:p", "n~p~s~1"),
        ):
            with pytest.raises(Refused, match="OOM the disk is full"):
                direct.say("c", *words)

    def test_unique_ids_that_nobody_uses(self, direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "RESERVED_AT_MOST", 2)
        for uid in "ab":
            assert direct.say("x", "SETNX", f"{P}unique:{uid}:state", "queued") == 1
        with pytest.raises(Refused, match="OOM 2 unique ids are taken"):
            direct.say("y", "SETNX", f"{P}unique:c:state", "queued")
        direct.peers.pop("x").close()
        assert direct.say("y", "SETNX", f"{P}unique:c:state", "queued") == 1

    def test_plans(self, direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(Refused, match="a plan has at most 65536 bytes"):
            TestPlans().insert(direct, 1_900_000_000, args=["x" * 65_536])
        monkeypatch.setattr(plans, "PLANS_AT_MOST", 0)
        with pytest.raises(Refused, match="there are 0 plans, the limit"):
            TestPlans().insert(direct, 1_900_000_000)

    def test_a_list_that_is_too_long_is_counted(self, direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(entries, "AT_MOST", 2)
        push(direct, "j1", "j2", "j3")
        assert direct.say("c", "LLEN", f"{P}unassigned") == 3
        with pytest.raises(Refused, match="is made of more than 2 records"):
            direct.say("c", "LRANGE", f"{P}unassigned", "0", "1")

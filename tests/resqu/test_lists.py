"""Lists of jobs: push, show, assign to pools, and pop by allocators and workers."""

import json

import pytest

from crossdock.model.commands.resqu import SetMapping
from tests.resqu.saying import BATCH, P, commit, job, push, work_off, worker
from tests.resqu.speaking import Direct, Refused


def test_a_repeated_push_adds_nothing(direct: Direct) -> None:
    push(direct, "j1", "j1")
    assert direct.say("c", "LLEN", f"{P}unassigned") == 1
    worker(direct)
    assert direct.say("w", "RPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1") == job("j1")
    assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") == job("j1")
    push(direct, "j1")
    assert direct.say("c", "LLEN", f"{P}unassigned") == 0, "the job is complete"


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
        direct.dispatcher.do(SetMapping(static, {"default": {"default": "mass"}}))
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

    def test_any_worker_of_the_pool_may_work_a_batch(self, direct: Direct) -> None:
        worker(direct)
        commit(direct, BATCH, 2)
        assert direct.say("c", "LLEN", f"{P}committed") == 0
        for ident in (f"{BATCH}-1", f"{BATCH}-2"):
            text = direct.say("w", "RPOPLPUSH", f"{P}static:queue:mass", f"{P}worker:n~p~s~1")
            assert json.loads(text)["id"] == ident
            direct.say("w", "RPOP", f"{P}worker:n~p~s~1")
        assert direct.say("c", "EXISTS", f"{P}committed:{BATCH}") == 0


class TestBuffers:
    def test_an_allocator_whose_reply_was_lost_gets_its_job_again(self, direct: Direct) -> None:
        worker(direct)
        push(direct, "j1", "j2")
        for _ in range(2):
            assert direct.say("w", "BRPOPLPUSH", f"{P}unassigned", f"{P}worker:n~p~s~1", "3") == job("j1")
        assert direct.say("w", "LRANGE", f"{P}worker:n~p~s~1", "0", "-1") == [job("j1")]
        assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") == job("j1")
        assert direct.say("w", "RPOP", f"{P}worker:n~p~s~1") is None

    def test_an_allocator_moves_jobs_to_a_pool_and_back(self, direct: Direct) -> None:
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
        assert len(direct.dispatcher.state.jobs) == 2

    def test_a_blocked_pop_is_served_and_one_on_a_wrong_key_is_refused(self, direct: Direct) -> None:
        direct.ask("a", "BRPOPLPUSH", f"{P}unassigned", f"{P}allocator:n:job-1", "3")
        push(direct, "j1")
        assert direct.hear("a") == job("j1")
        direct.ask("w", "BRPOPLPUSH", f"{P}static:queue:p", f"{P}worker:n~p~s~1", "3")
        direct.dispatcher.advance(3.0)
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
    def test_other_moves_between_keys_are_refused(self, direct: Direct, source: str, target: str) -> None:
        with pytest.raises(Refused, match=r"ERR elements cannot be moved from 'resqu-v4:.*' to 'resqu-v4:.*'"):
            direct.say("c", "RPOPLPUSH", P + source, P + target)

"""Faktory's `custom.uid` shares Resqu's unique IDs (model.md section 11), and a job that kills its workers."""

import pytest

from crossdock.model.commands import resqu
from crossdock.model.commands import resqu as r
from crossdock.protocols.redis.resqu.specs import Specs
from tests.model.resqu_bench import ResquBench, job_spec
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> Conversation:
    return worker(dispatcher, ClockedFaktory(dispatcher), "w1")


def push(peer: Conversation, jid: str, custom: str) -> bytes:
    return peer.ask(f'PUSH {{"jid":"{jid}","jobtype":"T","args":[],"custom":{custom}}}')


def test_one_unique_id_counts_for_both_protocols(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    assert push(peer, "first001", '{"uid":"u"}') == b"+OK\r\n"
    assert push(peer, "second01", '{"uid":"u"}') == b"-NOTUNIQUE Job not unique\r\n"
    assert not dispatcher.do(resqu.Reserve("u", 1))
    peer.ask("FETCH default")
    assert dispatcher.do(resqu.Defer("resqu", job_spec("d", "u", defer=0.0, stamped=False)))
    assert peer.ask('FAIL {"jid":"first001"}') == b"+OK\r\n"
    assert not dispatcher.do(resqu.Reserve("u", 1)), "the uid is held during retries"
    dispatcher.advance(50)
    assert b"first001" in peer.ask("FETCH default")
    assert peer.ask('ACK {"jid":"first001"}') == b"+OK\r\n"
    assert [job.jid for job in dispatcher.state.jobs.values()] == ["d"]


def test_a_reserved_unique_id_is_taken(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    assert dispatcher.do(resqu.Reserve("u", 1))
    assert push(peer, "first001", '{"uid":"u"}') == b"-NOTUNIQUE Job not unique\r\n"
    dispatcher.do(resqu.Release(1))
    assert push(peer, "first001", '{"uid":"u"}') == b"+OK\r\n"


@pytest.mark.parametrize("uid", ["5", "null", '""', '{"a":1}'])
def test_a_uid_that_is_not_a_string_is_ignored(peer: Conversation, uid: str) -> None:
    for jid in ("first001", "second01"):
        assert push(peer, jid, f'{{"uid":{uid}}}') == b"+OK\r\n"


def test_uid_and_unique_for_together_are_refused(peer: Conversation) -> None:
    answer = push(peer, "first001", '{"uid":"u","unique_for":60}')
    assert answer == b"-ERR custom.uid and custom.unique_for are two ways to be unique; choose one\r\n"


def test_a_job_that_kills_its_workers_dies_after_the_configured_number() -> None:
    bench = ResquBench()
    text = b'{"class":"C","sourceId":"s","name":"N","unique":{"uid":"u"},"id":"j","queue_time":1}'
    bench.do(resqu.PushJob("resqu", 1, Specs(max_attempts=2).queued(text)))
    for left in (1, 0):
        bench.pop("unassigned")
        bench.do(r.LoseBuffer("resqu", "worker:w1"))
        assert len(bench.state.jobs) == left
    assert bench.lock_state("u") is None

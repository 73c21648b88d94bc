"""Batches and unique, expiring and tracked jobs through Faktory requests (faktory.md section 9)."""

from collections.abc import Generator

import pytest

from crossdock.model.commands.core import GiveBack
from crossdock.protocols.base import Grant
from crossdock.testing.connection import run_out
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> Conversation:
    return worker(dispatcher, ClockedFaktory(dispatcher))


def push(peer: Conversation, jid: str, custom: str = "{}", queue: str = "default") -> bytes:
    return peer.ask(f'PUSH {{"jid":"{jid}","jobtype":"T","args":[],"queue":"{queue}","custom":{custom}}}')


def give_back(dispatcher: PlainDispatcher, jid: str) -> None:
    job = next(dispatcher.state.named(jid))
    assert job.lease is not None
    dispatcher.do(GiveBack("faktory", [(job.number, job.lease.token)]))


def test_one_fetch_has_one_reply(dispatcher: PlainDispatcher) -> None:
    """An expired member is removed, its batch's callback is pushed, and the waiting FETCH names both queues."""
    protocol = ClockedFaktory(dispatcher)
    peer, waiting = worker(dispatcher, protocol), worker(dispatcher, protocol)
    bid = peer.ask('BATCH NEW {"complete":{"jobtype":"C","args":[],"queue":"c"}}').split(b"\r\n")[1].decode()
    push(peer, "member01", f'{{"bid":"{bid}","expires_in":1}}', "q")
    push(peer, "fresh001", queue="q")
    peer.ask(f"BATCH COMMIT {bid}")
    peer.ask("QUEUE PAUSE q")
    dispatcher.advance(2)
    assert waiting.ask("FETCH q c") == b""
    peer.ask("QUEUE RESUME q")
    assert waiting.take().count(b"$") == 1


def test_a_job_after_many_expired_jobs_is_fetched(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    for n in range(1_200):
        push(peer, f"old-{n:05d}", '{"expires_in":1}')
    push(peer, "fresh001")
    dispatcher.advance(2)
    assert b"fresh001" in peer.ask("FETCH default")


def test_a_fetch_that_finds_only_expired_jobs_waits(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    for n in range(1_200):
        push(peer, f"old-{n:05d}", '{"expires_in":1}')
    dispatcher.advance(2)
    waiting = worker(dispatcher, ClockedFaktory(dispatcher))
    assert waiting.ask("FETCH default") == b""
    push(peer, "fresh001")
    assert b"fresh001" in waiting.take()


def test_other_requests_are_served_while_expired_jobs_are_removed(
    dispatcher: PlainDispatcher, peer: Conversation
) -> None:
    for n in range(1_200):
        push(peer, f"old-{n:05d}", '{"expires_in":1}')
    dispatcher.advance(2)
    [request] = peer.session.receive(b"FETCH default\r\n")
    work = peer.session.handle(request)
    assert isinstance(work, Generator)
    next(work)
    assert len(dispatcher.state.jobs) == 700
    assert push(peer, "fresh001") == b"+OK\r\n"
    answer = run_out(work)
    assert isinstance(answer, Grant) and b"fresh001" in answer.reply


def test_many_expired_jobs_do_not_extend_a_fetch(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    for n in range(1_200):
        push(peer, f"old-{n:05d}", '{"expires_in":1}')
    dispatcher.advance(2)
    [request] = peer.session.receive(b"FETCH default\r\n")
    work = peer.session.handle(request)
    assert isinstance(work, Generator)
    next(work)
    dispatcher.advance(2)
    assert run_out(work) == b"$-1\r\n"
    assert len(dispatcher.state.jobs) == 200


def test_an_expired_job_holds_no_lock(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    push(peer, "old-0001", '{"unique_for":3600,"expires_in":1}')
    dispatcher.advance(2)
    assert push(peer, "new-0001", '{"unique_for":3600}') == b"+OK\r\n"
    assert push(peer, "new-0002", '{"unique_for":3600}') == b"-NOTUNIQUE Job not unique\r\n"
    assert b"new-0001" in peer.ask("FETCH default")


def test_a_job_that_was_leased_in_time_keeps_its_lock(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    push(peer, "old-0001", '{"unique_for":3600,"expires_in":1}')
    peer.ask("FETCH default")
    dispatcher.advance(2)
    assert push(peer, "new-0001", '{"unique_for":3600}') == b"-NOTUNIQUE Job not unique\r\n"


def test_a_track_follows_a_lease_given_back(dispatcher: PlainDispatcher, peer: Conversation) -> None:
    push(peer, "tracked1", '{"track":1}')
    peer.ask("FETCH default")
    give_back(dispatcher, "tracked1")
    assert b'"state":"enqueued"' in peer.ask("TRACK GET tracked1")


def test_a_lock_until_start_is_held_again_when_the_lease_is_given_back(
    dispatcher: PlainDispatcher, peer: Conversation
) -> None:
    push(peer, "unique01", '{"unique_for":60,"unique_until":"start"}')
    peer.ask("FETCH default")
    give_back(dispatcher, "unique01")
    assert push(peer, "unique02", '{"unique_for":60}') == b"-NOTUNIQUE Job not unique\r\n"

"""Batches, unique, expiring and tracked jobs through the Faktory door (page 9): what the engine's rules come to."""

import pytest

from crossdock.model.commands import GiveBack
from tests.support.conversation import Conversation, Door, worker
from tests.support.desk import PlainDesk


@pytest.fixture
def desk() -> PlainDesk:
    return PlainDesk()


@pytest.fixture
def peer(desk: PlainDesk) -> Conversation:
    return worker(desk, Door(desk))


def push(peer: Conversation, jid: str, custom: str = "{}", queue: str = "default") -> bytes:
    return peer.ask(f'PUSH {{"jid":"{jid}","jobtype":"T","args":[],"queue":"{queue}","custom":{custom}}}')


def give_back(desk: PlainDesk, jid: str) -> None:
    job = next(desk.memory.named(jid))
    assert job.lease is not None
    desk.do(GiveBack("faktory", [(job.number, job.lease.token)]))


def test_one_fetch_has_one_reply(desk: PlainDesk) -> None:
    """An expired member goes, its batch's callback comes, and the waiter waits for both queues."""
    door = Door(desk)
    peer, waiting = worker(desk, door), worker(desk, door)
    bid = peer.ask('BATCH NEW {"complete":{"jobtype":"C","args":[],"queue":"c"}}').split(b"\r\n")[1].decode()
    push(peer, "member01", f'{{"bid":"{bid}","expires_in":1}}', "q")
    push(peer, "fresh001", queue="q")
    peer.ask(f"BATCH COMMIT {bid}")
    peer.ask("QUEUE PAUSE q")
    desk.advance(2)
    assert waiting.ask("FETCH q c") == b""
    peer.ask("QUEUE RESUME q")
    assert waiting.take().count(b"$") == 1


def test_a_track_follows_a_lease_given_back(desk: PlainDesk, peer: Conversation) -> None:
    push(peer, "tracked1", '{"track":1}')
    peer.ask("FETCH default")
    give_back(desk, "tracked1")
    assert b'"state":"enqueued"' in peer.ask("TRACK GET tracked1")


def test_a_lock_until_start_is_held_again_when_the_start_was_none(desk: PlainDesk, peer: Conversation) -> None:
    push(peer, "unique01", '{"unique_for":60,"unique_until":"start"}')
    peer.ask("FETCH default")
    give_back(desk, "unique01")
    assert push(peer, "unique02", '{"unique_for":60}') == b"-NOTUNIQUE Job not unique\r\n"

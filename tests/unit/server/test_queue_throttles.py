"""Queue throttles (faktory.md section 9.5): FETCH finds a full queue empty; a lease that ends admits the next job."""

import pytest

from crossdock.model.commands.admin import Flush
from crossdock.model.commands.core import GiveBack, SetThrottles
from crossdock.model.records import Per
from crossdock.server.static_config import InvalidEntry, throttles
from crossdock.settings.schema import Settings, ThrottleEntry
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher

EMPTY = b"$-1\r\n"


class Scene:
    """Ten jobs in a throttled queue, one in another, and workers."""

    def __init__(self, *throttle: tuple[str, int, Per, float]) -> None:
        self.dispatcher = PlainDispatcher()
        self.dispatcher.do(SetThrottles(throttle))
        self.protocol = ClockedFaktory(self.dispatcher)
        self.peer = worker(self.dispatcher, self.protocol)
        for n in range(10):
            self.push(f"job-{n:04d}")
        self.push("elsewhere", "other")

    def push(self, jid: str, queue: str = "mail", more: str = "") -> None:
        line = f'PUSH {{"jid":"{jid}","jobtype":"T","args":[],"queue":"{queue}"{more}}}'
        assert self.peer.ask(line) == b"+OK\r\n"

    def worker(self, wid: str) -> Conversation:
        return worker(self.dispatcher, self.protocol, wid)

    def restart(self) -> None:
        self.dispatcher = self.dispatcher.restarted()
        self.protocol = ClockedFaktory(self.dispatcher)
        self.peer = worker(self.dispatcher, self.protocol)


def fetched(said: bytes) -> str:
    """The jid in a reply, "" while there is none."""
    _, _, rest = said.partition(b'"jid":"')
    return rest.partition(b'"')[0].decode()


def test_leases_of_a_queue_are_limited_and_other_queues_are_not() -> None:
    scene = Scene(("mail", 2, Per.QUEUE, 0.0))
    one, two, three = (scene.worker(wid) for wid in ("w1", "w2", "w3"))
    assert fetched(one.ask("FETCH mail")) == "job-0000"
    assert fetched(two.ask("FETCH mail")) == "job-0001"
    assert fetched(three.ask("FETCH mail other")) == "elsewhere"
    assert three.ask("FETCH mail") == b""
    scene.dispatcher.advance(2)
    assert three.take() == EMPTY


@pytest.mark.parametrize("end", ['ACK {"jid":"job-0000"}', 'FAIL {"jid":"job-0000"}'])
def test_a_lease_that_ends_wakes_a_waiter(end: str) -> None:
    scene = Scene(("mail", 1, Per.QUEUE, 0.0))
    assert fetched(scene.peer.ask("FETCH mail")) == "job-0000"
    waiting = scene.worker("w1")
    assert waiting.ask("FETCH mail") == b""
    assert scene.peer.ask(end) == b"+OK\r\n"
    assert fetched(waiting.take()) == "job-0001"


def test_a_lease_that_expires_wakes_a_waiter() -> None:
    scene = Scene(("short", 1, Per.QUEUE, 0.0))
    scene.push("short-001", "short", ',"reserve_for":60')
    scene.push("short-002", "short")
    assert fetched(scene.peer.ask("FETCH short")) == "short-001"
    scene.dispatcher.advance(59)
    waiting = scene.worker("w1")
    assert waiting.ask("FETCH short") == b""
    scene.dispatcher.advance(1)
    assert fetched(waiting.take()) == "short-002"


def test_a_limit_per_worker_covers_all_its_connections() -> None:
    scene = Scene(("mail", 1, Per.WORKER, 0.0))
    one, again, two = scene.worker("w1"), scene.worker("w1"), scene.worker("w2")
    assert fetched(one.ask("FETCH mail")) == "job-0000"
    assert again.ask("FETCH mail") == b""
    assert fetched(two.ask("FETCH mail")) == "job-0001"
    assert two.ask('ACK {"jid":"job-0001"}') == b"+OK\r\n"
    assert again.take() == b"", "another worker's lease is not its own"
    assert one.ask('ACK {"jid":"job-0000"}') == b"+OK\r\n"
    assert fetched(again.take()) == "job-0002"


def test_a_full_throttle_asks_no_waiter() -> None:
    scene = Scene(("mail", 1, Per.QUEUE, 0.0))
    scene.peer.ask("FETCH mail")
    for _ in range(100):
        worker(scene.dispatcher, scene.protocol).ask("FETCH mail")
    before = scene.dispatcher.waits.asked
    scene.push("another-1")
    assert scene.dispatcher.waits.asked == before
    scene.peer.ask('ACK {"jid":"job-0000"}')
    assert scene.dispatcher.waits.asked == before + 1


@pytest.mark.parametrize("per", [Per.QUEUE, Per.WORKER])
def test_a_timeout_wakes_a_waiter(per: Per) -> None:
    scene = Scene(("mail", 1, per, 30.0))
    one, again = scene.worker("w1"), scene.worker("w1")
    assert fetched(one.ask("FETCH mail")) == "job-0000"
    scene.dispatcher.advance(29)
    assert again.ask("FETCH mail") == b""
    scene.dispatcher.advance(0.9)
    assert again.take() == b""
    scene.dispatcher.advance(0.1)
    assert fetched(again.take()) == "job-0001"


def test_a_lease_counts_no_longer_than_the_timeout() -> None:
    scene = Scene(("mail", 1, Per.QUEUE, 30.0))
    assert fetched(scene.peer.ask("FETCH mail")) == "job-0000"
    scene.dispatcher.advance(29.9)
    assert scene.peer.ask("FETCH mail") == b""
    scene.dispatcher.advance(2)
    assert fetched(scene.peer.take()) == "job-0001"
    # The first lease continues. Its end does not release the slot of the second.
    assert scene.peer.ask('ACK {"jid":"job-0000"}') == b"+OK\r\n"
    assert scene.peer.ask("FETCH mail") == b""


def test_holders_survive_a_restart_with_the_same_and_with_another_throttle() -> None:
    scene = Scene(("mail", 2, Per.QUEUE, 0.0))
    for _ in range(2):
        scene.peer.ask("FETCH mail")
    scene.restart()
    scene.dispatcher.do(SetThrottles([("mail", 2, Per.QUEUE, 0.0)]))
    assert scene.peer.ask("FETCH mail") == b""
    scene.restart()
    scene.dispatcher.do(SetThrottles([("mail", 3, Per.QUEUE, 0.0)]))
    assert fetched(scene.peer.ask("FETCH mail")) == "job-0002"
    assert scene.peer.ask("FETCH mail") == b""
    scene.restart()
    scene.dispatcher.do(SetThrottles([]))
    assert fetched(scene.peer.ask("FETCH mail")) == "job-0003"


def test_a_lease_whose_reply_was_lost_does_not_count() -> None:
    scene = Scene(("mail", 1, Per.QUEUE, 0.0))
    scene.peer.ask("FETCH mail")
    job = next(scene.dispatcher.state.named("job-0000"))
    assert job.lease is not None
    scene.dispatcher.do(GiveBack("faktory", [(job.number, job.lease.token)]))
    assert fetched(scene.peer.ask("FETCH mail")) == "job-0000"


def test_a_flush_empties_the_throttle() -> None:
    scene = Scene(("mail", 1, Per.QUEUE, 0.0))
    scene.peer.ask("FETCH mail")
    scene.dispatcher.do(Flush("faktory"))
    scene.push("after-001")
    assert fetched(scene.peer.ask("FETCH mail")) == "after-001"


@pytest.mark.parametrize("entry", [ThrottleEntry(), ThrottleEntry(concurrency=1, worker=1)])
def test_an_entry_with_neither_or_both_limits_is_refused(entry: ThrottleEntry) -> None:
    with pytest.raises(InvalidEntry, match=r"throttles\.mail: set either concurrency = N \(in all\) or worker = N"):
        throttles(Settings(throttles={"mail": entry}))


def test_entries_of_the_settings_file_become_throttles() -> None:
    entries = {"mail": ThrottleEntry(concurrency=3, timeout=9.5), "video": ThrottleEntry(worker=1)}
    assert throttles(Settings(throttles=entries)).throttles == [
        ("mail", 3, Per.QUEUE, 9.5),
        ("video", 1, Per.WORKER, 0.0),
    ]

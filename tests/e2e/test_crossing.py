"""All protocols of one real server over sockets: a part of the cases in tests/unit/protocols/crossing."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crossdock.client.base import connect
from crossdock.client.errors import Broken
from crossdock.protocols.faktory.session import BLOCK_S
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.peer import Got, Peer
from tests.support.peers import LISTENING, PEERS, ViaFaktory, ViaMasenko, ViaWorkq, reach
from tests.support.server import Server

PROTOCOLS = sorted(PEERS)
#: Close to the longest wait that Masenko accepts.
WAIT_S = 40.0
WAITING = [protocol for protocol in PROTOCOLS if PEERS[protocol].waits]

#: The replies to a waiting client when the server stops.
STOP_REPLIES = {
    "faktory": [b"$-1", b"-ERR shutdown in progress"],
    "workq": [b"-TIMEOUT"],
    "masenko": [b"EMPTY {}", b'ERR {"msg":"shutdown in progress"}'],
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("crossing") / "data", protocols=LISTENING) as server:
        yield server


class ProtocolPeers:
    """Peers of one test. The server is shared, but each test uses its own queue."""

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self._server = server
        self._stack = stack
        self.faktory = ViaFaktory(connect("faktory", "127.0.0.1", server.ports["faktory"], "", PATIENCE_S))
        stack.enter_context(closing(self.faktory))
        self._failures = self.failures()

    def peer(self, protocol: str) -> Peer:
        return self._stack.enter_context(closing(reach(self._server, protocol)))

    def failures(self) -> int:
        """Total number of failures so far."""
        total: int = json.loads(self.faktory.call("INFO"))["faktory"]["total_failures"]
        return total

    def requeue(self) -> None:
        """Wait for the failure, then requeue the job immediately instead of after its retry delay."""
        wait_until(lambda: self.failures() > self._failures, "a failure")
        assert self.faktory.call('MUTATE {"cmd":"requeue","target":"retries"}') == "+OK"


@pytest.fixture
def peers(running: Server) -> Iterator[ProtocolPeers]:
    with ExitStack() as stack:
        yield ProtocolPeers(running, stack)


def fetched(peer: Peer, queue: str) -> Got:
    got = peer.fetch(queue)
    assert got is not None
    return got


@pytest.mark.parametrize(("by", "through"), list(itertools.permutations(PROTOCOLS, 2)))
def test_a_job_is_pushed_failed_retried_and_settled_across_protocols(
    peers: ProtocolPeers, by: str, through: str
) -> None:
    queue, third = (
        f"life-{by}-{through}",
        peers.peer(next(protocol for protocol in PROTOCOLS if protocol not in (by, through))),
    )
    pusher, worker = peers.peer(by), peers.peer(through)
    pusher.push(queue, "word")
    got = fetched(worker, queue)
    assert got.text == "word"
    assert worker.fail(got.ident)
    if pusher.backs_off and not worker.says_when:
        peers.requeue()
    got = fetched(third, queue)
    assert got.text == "word"
    assert third.succeed(got.ident)
    assert all(peer.look(queue) == 0 for peer in (pusher, worker, third))


@pytest.mark.parametrize("by", PROTOCOLS)
def test_the_job_of_a_lost_connection_goes_to_a_waiter(peers: ProtocolPeers, running: Server, by: str) -> None:
    queue = f"lost-{by}"
    waits = peers.peer("workq")
    lost = reach(running, "masenko")
    peers.peer(by).push(queue, "word")
    fetched(lost, queue)
    waits.ask(queue, wait_s=WAIT_S)
    lost.close()
    if PEERS[by].backs_off:
        peers.requeue()
    got = waits.given()
    assert got is not None and got.text == "word"
    assert waits.succeed(got.ident)


def test_waiters_are_served_in_order_of_arrival(peers: ProtocolPeers) -> None:
    waits = [peers.peer(protocol) for protocol in (*WAITING, *reversed(WAITING))]
    pushers = [peers.peer(PROTOCOLS[n % len(PROTOCOLS)]) for n in range(len(waits))]
    began = time.monotonic()
    for each in waits:
        each.ask("row", wait_s=WAIT_S)
        peers.faktory.look("row")  # its reply shows that the fetch before it is waiting
    for n, pusher in enumerate(pushers):
        pusher.push("row", f"no. {n}")
    late = time.monotonic() - began > BLOCK_S  # Faktory's wait may then have ended before a job came
    served = [
        got.text if got else "" for each in waits if (got := each.given()) or not (late and each.protocol == "faktory")
    ]
    assert served == [f"no. {n}" for n in range(len(served))]


def test_a_result_is_available_for_a_worker_of_any_protocol(peers: ProtocolPeers) -> None:
    workq, masenko = peers.peer("workq"), peers.peer("masenko")
    assert isinstance(workq, ViaWorkq) and isinstance(masenko, ViaMasenko)
    ident = workq.push("results", "word")
    workq.ask_result(ident, PATIENCE_S)
    assert peers.faktory.fail(fetched(peers.faktory, "results").ident, "try again")
    assert masenko.succeed(fetched(masenko, "results").ident)
    assert workq.result() == (True, b"")


def test_a_stop_ends_all_waits_and_releases_connection_leases(tmp_path: Path) -> None:
    """Waits end with an empty reply.

    Jobs leased to a connection are ready at the next start, without a counted attempt.
    """
    server = Server(tmp_path / "data", protocols=LISTENING)
    with server, ExitStack() as stack:
        waits = {protocol: stack.enter_context(closing(reach(server, protocol))) for protocol in WAITING}
        holds = {protocol: stack.enter_context(closing(reach(server, protocol))) for protocol in PROTOCOLS}
        for protocol, peer in holds.items():
            peer.push(f"held-{protocol}", "word")
            fetched(peer, f"held-{protocol}")
        for protocol, peer in waits.items():
            peer.ask("nothing", wait_s=WAIT_S)
            holds[protocol].look("nothing")
        assert server.stop() == 0
        for protocol, peer in waits.items():
            assert [peer.wire.line() for _ in STOP_REPLIES[protocol]] == STOP_REPLIES[protocol]
            with pytest.raises(Broken, match="closed the connection"):
                peer.wire.line()
        server.start()
        look = stack.enter_context(closing(reach(server, "workq")))
        assert {protocol: look.look(f"held-{protocol}") for protocol in PROTOCOLS} == {
            protocol: int(peer.bound) for protocol, peer in PEERS.items()
        }

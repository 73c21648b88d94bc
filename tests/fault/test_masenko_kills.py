"""SIGKILL under a load of transactions: each is there whole or not at all, and what was answered is there."""

import json
import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.masenko_raw import Raw, told
from tests.support.server import Server

pytestmark = pytest.mark.fault

SEEDS = 600
PARTS = 3
WORKERS = 4


class Mover(threading.Thread):
    """Takes a task of `in`, and in one transaction settles it and pushes its parts into `out`."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._peer = Raw(server)
        self.answered: list[int] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        try:
            while task := self._fetch():
                seed = task["payload"]
                pushes = [f'PUSH {{"name":"part","queue":"out","payload":[{seed},{part}]}}' for part in range(PARTS)]
                reply = self._peer.ask("ATOMIC", *pushes, f'ACK {{"id":{task["id"]}}}', "DONE")
                if not reply:
                    return
                if len(told(reply)["ids"]) != PARTS:
                    self.wrong.append(reply)
                self.answered.append(seed)
        except OSError:
            return
        finally:
            self._peer.close()

    def _fetch(self) -> dict[str, int] | None:
        reply = self._peer.ask('FETCH {"queues":["in"],"timeout":"200ms"}')
        return told(reply) if reply.startswith("OK") else None


def test_all_of_each_or_none(tmp_path: Path) -> None:
    chance = random.Random(5)
    answered: set[int] = set()
    with Server(tmp_path / "data", doors=("masenko",)) as server:
        peer = Raw(server)
        lines = [f'PUSH {{"name":"seed","queue":"in","payload":{seed}}}' for seed in range(SEEDS)]
        assert len(told(peer.ask("ATOMIC", *lines, "DONE"))["ids"]) == SEEDS
        peer.close()
        for kill in range(4):
            movers = [Mover(server) for _ in range(WORKERS)]
            for mover in movers:
                mover.start()
            if kill < 3:
                time.sleep(chance.uniform(0.05, 0.25))
                server.kill()
            for mover in movers:
                mover.join(60)
                assert not mover.is_alive() and not mover.wrong
                assert answered.isdisjoint(mover.answered), "a task was settled twice"
                answered.update(mover.answered)
            if kill < 3:
                server.start()
                assert _parts(server).keys() >= answered
        parts = _parts(server)
    assert parts == dict.fromkeys(range(SEEDS), PARTS)


def _parts(server: Server) -> dict[int, int]:
    """How many parts of each seed are there, by a look that leaves them: the server is killed with its leases."""
    peer = Raw(server)
    found: Counter[int] = Counter()
    seen: set[tuple[int, int]] = set()
    while (reply := peer.ask('FETCH {"queues":["out"],"timeout":1}')).startswith("OK"):
        seed, part = told(reply)["payload"]
        assert (seed, part) not in seen, f"twice: {json.dumps([seed, part])}"
        seen.add((seed, part))
        found[seed] += 1
    assert set(found.values()) <= {PARTS}, "a transaction is there in part"
    server.restart()
    peer.close()
    return dict(found)

"""A load of edge cases: client clocks that are weeks off, changed and flushed retention settings, flows over months,
and a lake that expires dates."""

import json
from contextlib import suppress
from typing import Final

from crossdock.client.errors import Refused
from tests.pipeline.loads import QUEUES, Elsewhere, MixedLoad
from tests.support.all_protocols import InProcess

_DAY_H: Final = 24.0


class WildLoad(MixedLoad):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.astray = Elsewhere(InProcess(self.all_protocols.dispatcher, self.all_protocols.protocols["redis"]))
        self._faktory = self.all_protocols.faktory()
        self._old: list[str] = []
        self._bids: list[str] = []
        self._acts += [
            (4, self.go_astray),
            (2, self.let_days_pass),
            (2, self.set_history),
            (2, self.depend_on_old),
            (1, self.take_needs_back),
            (2, self.group),
            (2, self.join_old_group),
        ]

    def go_astray(self) -> None:
        peer = self.astray
        peer.hours = self.random.choice([-40, -20, -8, -3, -1, 1, 2, 6, 8, 31, 40]) * _DAY_H
        queue = self.random.choice(["mail", "far"])
        peer.push(queue, {})
        for _ in range(self.random.randrange(4)):
            got = peer.fetch(queue)
            if got is not None:
                (peer.fail if self.random.random() < 0.3 else peer.succeed)(got.ident)

    def let_days_pass(self) -> None:
        self.all_protocols.dispatcher.advance(self.random.choice([1, 2, 5, 20]) * 86_400.0 * self.random.random())
        self._faktory = self.all_protocols.faktory()  # idle connections were closed
        self.peers[1:4] = self.all_protocols.workq(), self.all_protocols.masenko(), self._faktory

    def set_history(self) -> None:
        name = self.random.choice(["stats-history", "histogram-history"])
        value = self.random.choice(["2", "5", "0x9", "12.5", "90", "none", "-1"])
        self._try("config.set", name, value) if self.random.random() < 0.8 else self._try("config.unset", name)

    def flush(self) -> None:
        self._faktory.call("FLUSH")
        self._bids.clear()

    def depend_on_old(self) -> None:
        self._old.append(self.qless.push("far", {}))
        some = self.random.sample(self._old, min(2, len(self._old)))
        self._old.append(self.qless.push("mail", {}, depends=json.dumps(some)))

    def take_needs_back(self) -> None:
        if self._old:
            self._try("depends", self.random.choice(self._old), "off", "all")

    def group(self) -> None:
        callback = {"jobtype": "called", "queue": "q", "args": []}
        parent = {"parent_bid": self._bids[-1]} if self._bids and self.random.random() < 0.3 else {}
        with suppress(Refused):  # the batch may have ended
            self._bids.append(self._faktory.call(f"BATCH NEW {json.dumps({'success': callback, **parent})}"))
            self._member(self._bids[-1])

    def join_old_group(self) -> None:
        if self._bids:
            self._member(self.random.choice(self._bids))

    def _member(self, bid: str) -> None:
        number = self.random.randrange(1 << 40)
        job = {"jid": f"member-{number:012d}", "jobtype": "k", "args": [], "queue": self.random.choice(QUEUES)}
        with suppress(Refused):
            self._faktory.call(f"PUSH {json.dumps({**job, 'custom': {'bid': bid}})}")

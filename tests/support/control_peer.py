"""A connection to the admin protocol without a socket: JSON in, JSON out, on a plain dispatcher."""

import json
from collections.abc import Generator
from typing import Any

from crossdock.protocols.admin.demand import Demand
from crossdock.protocols.admin.protocol import AdminProtocol
from crossdock.protocols.admin.server_status import Rates, ServerStatus, Sync
from crossdock.protocols.base import Close, Slices
from crossdock.protocols.worker_registry import WorkerRegistry
from crossdock.server.endpoints import plan_spec
from crossdock.server.lease_requests import LeaseRequests
from crossdock.settings.schema import Settings
from tests.support.conversation import run_out
from tests.support.dispatcher import PlainDispatcher

VITALS = ServerStatus(
    version="1.2.3",
    pid=4711,
    data="/data",
    durability="always",
    listeners={"faktory": "127.0.0.1:7419"},
    uptime_s=3.5,
    connections=2,
    memory_mib=30,
    entries_written=9,
    tail_events=10,
    tail_bytes=11,
    disk_free_bytes=12,
    refusing=None,
    sync=Sync(3, 0.5, 0.9, 1.0),
    rates=Rates(1.0, 2.0, 3.0, 4.0),
)


class FixedStatus:
    def server_status(self) -> ServerStatus:
        return VITALS


def admin_protocol(workers: WorkerRegistry | None = None, demand: Demand | None = None) -> AdminProtocol:
    demand = LeaseRequests({}, 0.0) if demand is None else demand
    return AdminProtocol(FixedStatus(), workers, plan_spec(Settings()), demand, "/etc/crossdock.toml")


class ControlPeer:
    def __init__(self, dispatcher: PlainDispatcher, workers: WorkerRegistry | None = None) -> None:
        self.session = admin_protocol(workers, dispatcher.lease_requests).session(dispatcher, lambda: None)
        self.said = bytearray(self.session.greeting())
        self.is_closed = False

    def send(self, data: bytes) -> None:
        """Handle the data as a connection does: reply to each complete request, close after a syntax error."""
        for line in self.session.receive(data):
            answer = self.session.handle(line)
            if isinstance(answer, Generator):
                answer = run_out(answer)
            assert isinstance(answer, bytes), "an admin request neither waits nor closes the connection"
            self.said += answer
        broken = self.session.broken()
        if broken is not None:
            self._end(broken)

    def _end(self, bye: Close) -> None:
        self.said += bye.reply
        self.is_closed = True

    def take(self) -> list[dict[str, Any]]:
        lines = bytes(self.said).splitlines()
        self.said.clear()
        return [json.loads(line) for line in lines]

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self.send(json.dumps({"do": do, **fields}).encode() + b"\n")
        (answer,) = self.take()
        return answer

    def work(self, do: str, **fields: Any) -> Slices:
        """The slices of a long request, so that a test can act between them."""
        (line,) = self.session.receive(json.dumps({"do": do, **fields}).encode() + b"\n")
        answer = self.session.handle(line)
        assert isinstance(answer, Generator)
        return answer

    def all(self, what: str, **fields: Any) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        rows: list[dict[str, Any]] = []
        while True:
            page = self.ask(what, **fields)
            rows += page[what]
            if page["after"] is None:
                return rows
            fields["after"] = page["after"]

"""A connection to the admin protocol without a socket: JSON in, JSON out, on a plain dispatcher."""

import json
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from crossdock.protocols.admin.measurements import (
    Demand,
    Distribution,
    History,
    JournalFigures,
    ProtocolTraffic,
    Quantiles,
    QueueFigures,
    ServerFigures,
    SettingRow,
)
from crossdock.protocols.admin.protocol import AdminProtocol
from crossdock.protocols.admin.server_status import Rates, ServerStatus, Sync
from crossdock.protocols.base import Close, Slices
from crossdock.protocols.worker_registry import WorkerRegistry
from crossdock.server.endpoints import plan_spec
from crossdock.server.lease_requests import LeaseRequests
from crossdock.settings.schema import Settings
from crossdock.testing.connection import run_out
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


SETTING = SettingRow("server.log", "info", "default", "Lowest level that is logged to stderr")
TRAFFIC = ProtocolTraffic("faktory", "127.0.0.1:7419", 2, 100, 3)
HISTORY = History(10.0, "2026-11-18T10:00:00Z", [1, 2], [1, 1], [0, 1], [0, 0], [0, 1])

_NOTHING = Distribution((1.0,), [0, 0], 0.0)
_FIGURES = ServerFigures(
    version="1.2.3",
    started=1.0,
    memory_bytes=30 * 1024 * 1024,
    disk_free_bytes=12,
    refusing=False,
    journal=JournalFigures(_NOTHING, _NOTHING, _NOTHING, written_bytes=9, tail_bytes=11, tail_events=10),
    lake=None,
    traces=0,
    traces_dropped=0,
    loop_delay=_NOTHING,
    protocols=[TRAFFIC],
)


def queue_figures(name: str) -> QueueFigures:
    return QueueFigures(
        queue=name,
        pushed=1,
        leased=1,
        processed=1,
        failed=0,
        retried=0,
        dead=0,
        expired=0,
        wait=_NOTHING,
        run=_NOTHING,
        states={},
        oldest_s=None,
        paused=False,
    )


class FixedStatus:
    """Fixed figures. The queues `mail` and `video` are tracked."""

    def server_status(self) -> ServerStatus:
        return VITALS

    def figures(self) -> ServerFigures:
        return _FIGURES

    def busiest(self) -> Iterable[str]:
        return ("mail", "video")

    def queue_figures(self, names: Iterable[str]) -> Iterator[QueueFigures]:
        return map(queue_figures, names)

    def other_figures(self) -> QueueFigures:
        return queue_figures("_other")

    def queue_rates(self, queue: str) -> Rates | None:
        return Rates(0.1, 0.2, 0.3, 0.4) if queue in self.busiest() else None

    def history(self, queue: str | None) -> History | None:
        return HISTORY if queue is None or queue in self.busiest() else None

    def times(self, queue: str) -> tuple[Quantiles, Quantiles]:
        return Quantiles(1.0, 2.0, 3.0, 4), Quantiles()

    def traffic(self) -> list[ProtocolTraffic]:
        return [TRAFFIC]

    def warnings(self) -> list[str]:
        return ["the disk is small"]

    def settings_in_effect(self) -> list[SettingRow]:
        return [SETTING]


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

"""Live numbers by server-sent events. One task asks the server for all viewers, and only while there are viewers."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec
from litestar import get
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from crossdock.web.admin import Admin, Refused, ServerUnavailable
from crossdock.web.caller import WebRequest
from crossdock.web.pages import charts
from crossdock.web.pages.asking import ask
from crossdock.web.pages.formatting import NONE, count, rate, size, span
from crossdock.web.pages.render import nav_counts, text_of

#: Open event streams. A page beyond them shows numbers that do not move.
VIEWERS: Final = 64

#: Seconds between two requests to the server.
INTERVAL_S: Final = 2.0

#: Seconds until a stream ends. The browser opens it again, which checks the sign-in again.
STREAM_S: Final = 300.0

_encode = msgspec.json.Encoder().encode


def numbers(status: dict[str, Any], overview: dict[str, Any] | None) -> dict[str, Any]:
    """Texts by name, as pages show them first and later update them."""
    shown: dict[str, Any] = {name: count(value) for name, value in nav_counts(status).items()}
    rates = status["rates"]
    shown |= {f"rate_{name}": rate(value) for name, value in rates.items()}
    shown |= {
        "connections": count(status["connections"]),
        "memory": f"{status['memory_mib']} MiB",
        "disk_free": size(status["disk_free_bytes"]),
        "uptime": span(status["uptime_s"]),
        "processed": count(status["processed"]),
        "failures": count(status["failures"]),
    }
    oldest = overview.get("oldest") if overview else None
    shown["oldest"] = span(oldest["oldest_s"]) if oldest else NONE
    shown["oldest_queue"] = f"in {oldest['queue'][:60]}" if oldest else "nothing waits"
    return shown


class Live:
    """The latest numbers, and the task that asks for them."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None
        self._event = ServerSentEventMessage(event="starting", data="")
        self._changed = asyncio.Event()

    async def stream(self) -> AsyncGenerator[ServerSentEventMessage, None]:
        if self._viewers >= VIEWERS:
            yield ServerSentEventMessage(event="full", data="")
            return
        self._viewers += 1
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._poll())
            elif self._event.event == "numbers":  # the next ones can be two seconds away
                yield self._event
            end = time.monotonic() + STREAM_S
            while time.monotonic() < end:
                await self._changed.wait()
                yield self._event
        finally:
            self._viewers -= 1

    async def _poll(self) -> None:
        while self._viewers:
            self._event = await self._ask()
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
            await asyncio.sleep(INTERVAL_S)

    async def _ask(self) -> ServerSentEventMessage:
        try:
            status = (await self._admin.ask("status"))["status"]
            overview = (await self._admin.ask("overview"))["overview"]
        except (ServerUnavailable, Refused):
            return ServerSentEventMessage(event="unavailable", data="")
        return ServerSentEventMessage(event="numbers", data=_encode(numbers(status, overview)).decode())


@get("/live", include_in_schema=False)
async def live(request: WebRequest) -> ServerSentEvent:
    """The numbers of all pages, every two seconds."""
    state = request.app.state
    if "live" not in state:
        state.live = Live(state.admin)
    return ServerSentEvent(state.live.stream())


@get("/live/rates", include_in_schema=False)
async def rates(request: WebRequest) -> dict[str, Any]:
    """The charts of the last hour, of one queue or of all."""
    found = await ask(request, "rates", queue=text_of(request, "queue", 1_024) or None)
    return charts.hour(found["rates"])


handlers = [live, rates]

"""Requests, error replies and open connections of HTTP, which the server cannot count: this process has them."""

from collections.abc import Collection
from typing import Any, Final

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

#: The name of the listener in the server's reply.
PROTOCOL: Final = "http"

_ERROR_STATUS: Final = 400


class Traffic:
    """Counts since this process started. A reload of some settings starts it again."""

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0  #: replies with status 400 or above
        self.open: Collection[object] = ()  #: the connections, which uvicorn keeps

    def counts(self) -> dict[str, int]:
        return {"connections": len(self.open), "commands": self.requests, "errors": self.errors}

    def merged(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows of the `protocols` verb, with the numbers of HTTP."""
        return [row | self.counts() if row["protocol"] == PROTOCOL else row for row in rows]


class Counting:
    """Outermost, so that rejected requests count, too. uvicorn answers input that is not HTTP, which is not counted."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        self._traffic.requests += 1

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= _ERROR_STATUS:
                self._traffic.errors += 1
            await send(message)

        await self._app(scope, receive, sending)

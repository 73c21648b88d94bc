"""Live numbers: one task asks for all viewers, viewers are bounded, and a server that is gone is reported."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from crossdock.web import live
from crossdock.web.admin import Admin
from tests.support.admin_socket import admin_socket
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher


class CountedAdmin(Admin):
    requests = 0

    async def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self.requests += 1
        return await super().ask(do, **fields)


def test_all_viewers_share_one_request_and_further_ones_are_sent_away(tmp_path: Path) -> None:
    async def look() -> None:
        admin = CountedAdmin(tmp_path)
        source = live.Live(admin)
        streams = [source.stream() for _ in range(live.VIEWERS)]
        events = await asyncio.gather(*(anext(stream) for stream in streams))
        assert {event.event for event in events} == {"numbers"}
        assert msgspec.json.decode(str(events[0].data))["ready"] == "1"
        assert admin.requests == 2  # status and overview
        assert [event.event async for event in source.stream()] == ["full"]
        await streams.pop().aclose()
        again = source.stream()
        assert (await anext(again)).event == "numbers"
        for stream in (*streams, again):
            await stream.aclose()
        await admin.close()

    peer = ControlPeer(PlainDispatcher())
    peer.ask("push", queue="mail", kind="send", args=[])
    with admin_socket(tmp_path, peer):
        asyncio.run(look())


def test_a_server_that_is_gone_is_reported_to_viewers(tmp_path: Path) -> None:
    async def look() -> str:
        stream = live.Live(Admin(tmp_path)).stream()
        event = await anext(stream)
        await stream.aclose()
        return str(event.event)

    assert asyncio.run(look()) == "unavailable"

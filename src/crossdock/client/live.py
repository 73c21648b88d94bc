"""A blocking client of live jobs through the Redis door: pages by cursor, from any machine that reaches it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from crossdock.client.closes import Closes
from crossdock.client.errors import Broken, Refused
from crossdock.client.redis_door import Where, function, reach, refusal


class LiveJobs(Closes):
    """Raises NoServer or Refused."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._stream = reach(where)

    def rows(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """All jobs that the filters let pass, as the control door's `jobs` shows them. Raises Broken."""
        after = None
        while True:
            page = self.page(after=after, **filters)
            yield from page["jobs"]
            after = page["after"]
            if after is None:
                return

    def page(self, **request: Any) -> dict[str, Any]:
        given = {name: value for name, value in request.items() if value is not None}
        self._stream.send(function(b"crossdock.jobs", msgspec.json.encode(given)))
        line = self._stream.line()
        if line.startswith(b"-"):
            raise refusal(line)
        if not line.startswith(b"$") or not line[1:].isdigit():
            raise Refused(f"{self._where} is no Redis door of Crossdock: {line[:80]!r}")
        try:
            return msgspec.json.decode(self._stream.block(int(line[1:])), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Broken(f"the server's answer is not what it should be: {error}") from error

    def close(self) -> None:
        self._stream.close()

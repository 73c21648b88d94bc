"""A blocking Workq client with what the command line needs: add, schedule, lease, complete and fail."""

from typing import Final

from crossdock.client.base import LEFT, Closes, Taken, connect
from crossdock.client.errors import Broken, Refused
from crossdock.protocols.workq import codec
from crossdock.protocols.workq.codec import Codec

TIMEOUT_S: Final = 30.0

#: The codec's messages end with it; the stream returns lines without it.
END: Final = b"\r\n"


class WorkqClient(Closes):
    left = LEFT

    def __init__(self, host: str, port: int, path: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Connect, over a UNIX socket if there is a path. Raises NoServer."""
        self._stream = connect("Workq", host, port, path, timeout_s)
        self._timeout_s = timeout_s

    def add(
        self, ident: str, name: str, payload: bytes, *, ttr_ms: int, ttl_ms: int, time: str = "", flags: str = ""
    ) -> None:
        """`add`, or with a time `schedule`. Returns when the job is durable. Raises Refused."""
        line = f"schedule {ident} {name} {ttr_ms} {ttl_ms} {time}" if time else f"add {ident} {name} {ttr_ms} {ttl_ms}"
        self._ok(f"{line} {len(payload)} {flags}", payload)

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of these names; None: no job within that time. Raises Refused."""
        self._stream.set_timeout(wait_s + self._timeout_s)
        self._send(f"lease {' '.join(queues)} {round(wait_s * 1_000)}")
        line = self._stream.line()
        self._stream.set_timeout(self._timeout_s)
        if line + END == codec.TIMEOUT:
            return None
        _expect(line, codec.ONE)
        head = self._stream.line()
        words = head.decode("ascii", "replace").split(" ")
        if len(words) not in (3, 4) or not words[-1].isdecimal():  # workq.lease_ttr decides whether the TTR is included
            raise Broken(f"unexpected reply to lease: {head[:80]!r}")
        return Taken(words[0], words[1], words[1], self._stream.block(int(words[-1])))

    def done(self, job: Taken, result: bytes = b"") -> None:
        self._ok(f"complete {job.ident} {len(result)}", result)

    def failed(self, job: Taken, message: str) -> None:
        result = message.encode()
        self._ok(f"fail {job.ident} {len(result)}", result)

    def _send(self, line: str, block: bytes | None = None) -> None:
        """Parse the line with the server's codec first, because a line break in a word would start a second command."""
        data = line.encode("utf-8", "replace") + (b"\r\n" if block is None else b"\r\n%b\r\n" % block)
        read = Codec().receive(data)
        if len(read) != 1 or read[0] is None or not line.isprintable():
            raise Refused(f"Workq accepts printable ASCII only: {line!r}")
        if isinstance(read[0], bytes):
            raise _refused(read[0])
        self._stream.send(data)

    def _ok(self, line: str, block: bytes) -> None:
        self._send(line, block)
        _expect(self._stream.line(), codec.OK)

    def close(self) -> None:
        self._stream.close()


def _expect(line: bytes, wanted: bytes) -> None:
    if line.startswith(b"-"):
        raise _refused(line)
    if line + END != wanted:
        raise Broken(f"unexpected reply: {line[:80]!r}")


def _refused(reply: bytes) -> Refused:
    return Refused(reply[1:].decode("utf-8", "replace").rstrip())

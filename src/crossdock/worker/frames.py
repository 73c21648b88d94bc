"""What the supervisor and a child say to each other, over the child's stdin and stdout.

A frame is a length of four bytes and a JSON text. A frame holds many jobs or many outcomes: a frame per job would cost
more than a short job. A `row` is the job's row in the child's `JobTable`.
"""

import struct
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from crossdock.client.jobs import FetchedJob

_LENGTH: Final = struct.Struct(">I")
#: Longest frame: several jobs of the largest size.
FRAME_BYTES: Final = 1024 * 1024 * 1024

#: Why a task is to end: its lease was lost, its time is over, or the worker stops.
Reason = Literal["lost", "timeout", "stop"]


# From the supervisor.


class Assignment(msgspec.Struct, array_like=True, gc=False):
    row: int
    job: FetchedJob


class Run(msgspec.Struct, tag="run", array_like=True):
    """Run these jobs, in this order, as slots become free."""

    jobs: list[Assignment]


class Interrupt(msgspec.Struct, tag="interrupt", array_like=True):
    """Tell a running task to end."""

    row: int
    reason: Reason


class Sync(msgspec.Struct, tag="sync", array_like=True):
    """Store the app's schedules and rate limits on the server."""


class Stop(msgspec.Struct, tag="stop", array_like=True):
    """End the process when no task is running. No more jobs follow."""


Order: TypeAlias = Run | Interrupt | Sync | Stop


# From a child.


class Loaded(msgspec.Struct, tag="loaded", array_like=True, kw_only=True):
    """The app was imported, and the child is ready for jobs."""

    url: str  #: of the app's server; may contain a password
    app: str
    tasks: list[str]  #: the kinds that the app knows
    queues: list[str]  #: of its tasks
    timeouts: dict[str, float] = {}  #: in seconds, by kind, of tasks that have one
    files: list[str] = []  #: sources of the modules that are the user's own
    sync: str = ""  #: digest of the app's schedules and rate limits; empty: it has none


class NotLoaded(msgspec.Struct, tag="not-loaded", array_like=True):
    """The app could not be imported, and the process ends. `message` is one sentence with the cure."""

    message: str
    trace: str = ""
    files: list[str] = []


class Succeeded(msgspec.Struct, tag="a", array_like=True, gc=False):
    row: int
    seconds: float
    result: msgspec.Raw = msgspec.Raw(b"null")  #: JSON; a Raw cannot be optional


class Failed(msgspec.Struct, tag="f", array_like=True):
    row: int
    seconds: float
    error: str
    message: str
    backtrace: list[str] = []
    final: bool = False
    delay_s: float | None = None


class Snoozed(msgspec.Struct, tag="s", array_like=True):
    row: int
    seconds: float
    delay_s: float
    reason: str = ""


class Returned(msgspec.Struct, tag="r", array_like=True):
    """The job was revoked before it was started."""

    row: int


class Interrupted(msgspec.Struct, tag="i", array_like=True):
    """The task ended because of an interrupt, and not by an outcome of its own."""

    row: int
    seconds: float
    reason: Reason


class Progress(msgspec.Struct, tag="p", array_like=True):
    row: int
    percent: int | None
    text: str


Outcome: TypeAlias = Succeeded | Failed | Snoozed | Returned | Interrupted | Progress


class Report(msgspec.Struct, tag="report", array_like=True):
    outcomes: list[Outcome]


Message: TypeAlias = Loaded | NotLoaded | Report


# Frames.

_encoder: Final = msgspec.json.Encoder()
decode_order: Final = msgspec.json.Decoder(Order).decode
decode_message: Final = msgspec.json.Decoder(Message).decode


def frame(body: Order | Message) -> bytes:
    text = _encoder.encode(body)
    return _LENGTH.pack(len(text)) + text


class BadFrame(Exception):
    """The stream is out of step. Only something that wrote into the pipe can cause it."""


class FrameReader:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that are complete. Raises BadFrame."""
        if not self._unread and len(data) >= 4 and _LENGTH.unpack_from(data)[0] == len(data) - 4:
            yield data[4:]  # mostly a read is one frame
            return
        self._unread += data
        while len(self._unread) >= 4:
            (size,) = _LENGTH.unpack_from(self._unread)
            if size > FRAME_BYTES:
                raise BadFrame(f"a frame of {size} bytes")
            if len(self._unread) < size + 4:
                return
            body = bytes(self._unread[4 : size + 4])
            del self._unread[: size + 4]
            yield body

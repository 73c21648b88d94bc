"""The lake's process: a child of the server that turns the journal's tail into segments.

    python -m crossdock.lake.exporter OPTIONS

It tells its position, a JSON object a line, and the server holds the journal there: a child that dies at any moment
has changed nothing that is not done again. It runs when nothing else wants the processor, unless the server says
otherwise, and ends when its stdin does: with the server.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from crossdock.journal.child_process import end_with_server
from crossdock.journal.files import free_bytes
from crossdock.lake.journal_tail import Tail
from crossdock.lake.messages import Options, Position
from crossdock.lake.redaction import Payloads
from crossdock.lake.writer import Writer
from crossdock.model.errors import CrossdockError

#: Seconds between two looks at a journal that has nothing new; a hundredth of the processor, at most, for the looking.
LOOK_S: Final = 1.0

#: And between two words to the server while there is much to read.
_TELL_S: Final = 2.0

#: A segment whose batches are old enough is finished with this part of the usual size: 1 MiB of 64.
_PART: Final = 64

#: A server that was killed leaves a process behind for a moment.
_PATIENCE_S: Final = 10.0

#: Whole dates are let go of this often.
_EXPIRE_S: Final = 600.0


class Exporter:
    def __init__(self, options: Options, tell: Callable[[Position], None]) -> None:
        self._options = options
        self._tell = tell
        self._tail = Tail(options.data)
        payloads = Payloads(options.payloads, options.redact, options.errors)
        self._writer = Writer(options.folder, self._tail, payloads, _PATIENCE_S)
        self._began = 0.0  #: when the first batch of the drafts was taken
        self._told = 0.0
        self._expired = time.monotonic() - _EXPIRE_S + options.hold_s
        self._read_at = _boottime()  #: when the newest batch was read
        self._look_s = min(LOOK_S, options.segment_s / 4)

    def run(self) -> None:
        self.report()
        while True:
            if not self.step():
                time.sleep(self._look_s)

    def step(self) -> bool:
        """Read what is there, up to a segment, and publish it if it is time. False: there was nothing to do."""
        options, writer = self._options, self._writer
        if free_bytes(options.folder) < options.keep_free:
            self.report(f"less than {options.keep_free // 1024 // 1024} MiB are free on the disk of {options.folder}")
            return False
        before = writer.read
        for _ in self._taken():
            self._read_at = _boottime()
            if time.monotonic() - self._told >= _TELL_S:
                self.report()
        if writer.bytes and not self._began:
            self._began = time.monotonic()
        # The span counts, too: what the processes before this one had taken and could not finish may be old.
        old = self._began and max(time.monotonic() - self._began, writer.span_s) >= options.segment_s
        if writer.bytes >= options.segment_bytes or old:
            writer.publish()
            self._began = 0.0
            self.report()
        elif options.keep_days and writer.steady is not None and time.monotonic() - self._expired >= _EXPIRE_S:
            self._expired = time.monotonic()
            writer.expire(options.keep_days, writer.steady + _boottime() - self._read_at)
        return writer.read != before

    def _taken(self) -> Iterator[int]:
        return self._writer.take(self._is_enough)

    def _is_enough(self) -> bool:
        """Of a long tail the oldest part is finished first: a process that is killed again and again gets on."""
        writer, most = self._writer, self._options.segment_bytes
        return writer.bytes >= most or (writer.bytes >= most // _PART and writer.span_s >= self._options.segment_s)

    def report(self, trouble: str = "") -> None:
        self._told = time.monotonic()
        self._tell(Position(self._writer.done.last, self._tail.behind(self._writer.read), trouble))

    def close(self) -> None:
        self._writer.close()
        self._tail.close()


def _boottime() -> float:
    """It goes at the pace of the server's steady clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _say(position: Position) -> None:
    sys.stdout.write(msgspec.json.encode(position).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=Options, dec_hook=lambda _, text: Path(text))
    end_with_server()
    pa.set_cpu_count(1)  # a thread of its own would neither be idle nor be raised
    pa.set_io_thread_count(1)
    gc.disable()  # rows are made and dropped by the million, none of them in a circle
    try:
        Exporter(options, _say).run()
    except (CrossdockError, OSError) as error:
        _say(Position(-1, 0, str(error)))
        sys.exit(1)


if __name__ == "__main__":
    main()

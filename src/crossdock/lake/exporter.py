"""The exporter: a child process of the server that writes the journal's tail to the lake as segments.

    python -m crossdock.lake.exporter OPTIONS

It reports its position on stdout, one JSON object per line, and the server does not trim the journal beyond it. So the
process may die at any moment: the next one repeats what was not finished. It runs with idle priority unless the server
raises it, and exits when its stdin closes, which happens when the server ends.
"""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from deltalake.exceptions import DeltaError

from crossdock.journal.child_process import command_line, end_with_server
from crossdock.journal.files import free_bytes
from crossdock.lake.journal_tail import Tail
from crossdock.lake.location import folder
from crossdock.lake.messages import Chores, Options, Position
from crossdock.lake.redaction import Payloads
from crossdock.lake.table import first_line
from crossdock.lake.writer import Writer
from crossdock.model.errors import CrossdockError

#: Seconds between two polls of a journal without new entries. Polling takes at most 1 % of a processor.
LOOK_S: Final = 1.0

#: Seconds between two position reports while there is much to read.
_REPORT_S: Final = 2.0

#: A segment whose entries are old enough is closed at this fraction of the usual size: 1 MiB of 64.
_PART: Final = 64

#: How long to wait for the lock: the exporter of a killed server takes a moment to exit.
_LOCK_WAIT_S: Final = 10.0

#: Seconds between two runs of the maintenance process.
_MAINTAIN_S: Final = 600.0
#: It also runs after this many commits.
_MAINTAIN_COMMITS: Final = 100


class Exporter:
    def __init__(
        self, options: Options, send: Callable[[Position], None], nudged: threading.Event | None = None
    ) -> None:
        """`nudged` is set when the server wants everything so far in the lake now."""
        self._options = options
        self._send = send
        self._nudged = nudged or threading.Event()
        self._tail = Tail(options.data)
        payloads = Payloads(options.payloads, options.redact, options.errors)
        self._writer = Writer(
            options.location, options.data, self._tail, payloads, _LOCK_WAIT_S,
            server=options.server, group=options.group,
        )  # fmt: skip
        self._folder = folder(options.location) or options.data
        self._began = 0.0  #: when the first entry went into the drafts
        self._reported = 0.0
        self._maintained = time.monotonic() - _MAINTAIN_S / 2
        self._commits = 0  #: since then
        self._expires_at = time.monotonic() + options.hold_s
        self._maintenance: subprocess.Popen[bytes] | None = None
        self._read_at = _boottime()  #: when the newest entry was read
        self._look_s = min(LOOK_S, options.segment_s / 4)

    def run(self) -> None:
        self.report()
        while True:
            if not self.step():
                time.sleep(self._look_s)

    def step(self) -> bool:
        """Read new entries, up to a segment of them, and publish the segment if it is due. False: nothing new."""
        options, writer = self._options, self._writer
        if min(free_bytes(self._folder), free_bytes(options.data)) < options.keep_free:
            self.report(f"less than {options.keep_free // 1024 // 1024} MiB free on the disk of {self._folder}")
            return False
        before, nudged = writer.read, self._nudged.is_set()
        self._nudged.clear()
        for _ in self._taken():
            self._read_at = _boottime()
            if time.monotonic() - self._reported >= _REPORT_S:
                self.report()
        if writer.bytes and not self._began:
            self._began = time.monotonic()
        # The entries' own age counts: the server starts this process late, and an earlier one may not have finished.
        old = self._began and max(time.monotonic() - self._began, writer.age_s) >= options.segment_s
        if writer.bytes >= options.segment_bytes or old or (nudged and writer.bytes):
            writer.publish()
            self._began = 0.0
            self._commits += 1
            self.report()
        if time.monotonic() - self._maintained >= _MAINTAIN_S or self._commits >= _MAINTAIN_COMMITS:
            self._maintained, self._commits = time.monotonic(), 0
            self._maintain()
        return writer.read != before

    def _maintain(self) -> None:
        """Start the maintenance process, unless the last one still runs."""
        if self._maintenance is not None:
            if self._maintenance.poll() is None:
                return
            self._end_maintenance(self._maintenance)
        options, steady = self._options, self._writer.steady
        may_expire = steady is not None and time.monotonic() >= self._expires_at
        self._maintenance = start_maintenance(
            Chores(
                data=options.data,
                location=options.location,
                group=options.group,
                keep_days=options.keep_days if may_expire else 0,
                steady=0.0 if steady is None else steady + _boottime() - self._read_at,
                keep_free=options.keep_free,
            )
        )

    def _taken(self) -> Iterator[int]:
        return self._writer.take(self._is_enough)

    def _end_maintenance(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.communicate()
        self._maintenance = None

    def _is_enough(self) -> bool:
        """Close a segment early if its entries are old: a process that is killed repeatedly still makes progress."""
        writer, most = self._writer, self._options.segment_bytes
        return writer.bytes >= most or (writer.bytes >= most // _PART and writer.span_s >= self._options.segment_s)

    def report(self, trouble: str = "") -> None:
        self._reported = time.monotonic()
        self._send(Position(self._writer.state.last, self._tail.behind(self._writer.read), trouble))

    def close(self) -> None:
        if self._maintenance is not None:
            self._end_maintenance(self._maintenance)
        self._writer.close()
        self._tail.close()


def start_maintenance(chores: Chores) -> "subprocess.Popen[bytes]":
    """Start it with this process' priority. Its stdin closes when this process ends, and then it exits."""
    command = command_line("crossdock.lake.maintenance")
    return subprocess.Popen([*command, msgspec.json.encode(chores, enc_hook=str).decode()], stdin=subprocess.PIPE)


def _boottime() -> float:
    """A clock that runs at the same rate as the server's steady clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _print(position: Position) -> None:
    sys.stdout.write(msgspec.json.encode(position).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=Options, dec_hook=lambda _, text: Path(text))
    nudged = threading.Event()
    end_with_server(nudged.set)
    pa.set_cpu_count(1)  # further threads would not get the priority that the server sets
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.system_memory_pool())  # keeps 50 MiB less than the default one, at the same speed
    gc.disable()  # millions of rows are created and dropped, and none is part of a reference cycle
    try:
        Exporter(options, _print, nudged).run()
    except (CrossdockError, DeltaError, OSError) as error:
        _print(Position(-1, 0, first_line(error)))
        sys.exit(1)


if __name__ == "__main__":
    main()

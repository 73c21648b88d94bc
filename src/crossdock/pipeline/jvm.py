"""Starts Spark's JVM and controls its output.

While they start, Java and Spark print warnings that an operator cannot use: about incubator modules, log levels and
optional libraries. Java prints some of them on stdout, where they would damage `--json`. So both streams of the JVM are
read here. What arrives before the session is up is kept for the error message; what follows goes to stderr.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, Final

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from crossdock.pipeline.errors import cause

_STDERR: Final = 2
_KEPT_LINES: Final = 200
#: Lines that never explain a failure.
_NOISE: Final = (
    "WARNING:", "Picked up ", "Setting default log level", "To adjust logging level", "Using Spark's",
    "Error occurred during initialization of VM",
)  # fmt: skip
_END_S: Final = 2.0  #: for the rest of the output of a JVM that has ended


class Output:
    """Reads the output of the JVM in a thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._starting = True
        self._thread = threading.Thread(target=self._read, name="crossdock-jvm-output", daemon=True)
        self._thread.start()

    def pass_on(self) -> None:
        """Drop what was kept, and pass on what follows."""
        self._starting = False
        self._kept.clear()

    def reason(self) -> str:
        """The line that says why the JVM ended before it was up; empty if there is none."""
        self._thread.join(_END_S)
        lines = [line for line in self._kept if line.strip() and not line.startswith(_NOISE)]
        return cause("\n".join(lines)) if lines else ""

    def _read(self) -> None:
        for line in self._stream:
            text = line.decode("utf-8", "replace")
            if self._starting:
                self._kept.append(text.rstrip())
            else:
                with suppress(OSError, ValueError):  # stderr is closed
                    sys.stderr.write(text)
                    sys.stderr.flush()


#: pyspark does not declare its types.
_launch: Final[Callable[[SparkConf, dict[str, Any]], JavaGateway]] = launch_gateway
_output: list[Output] = []


def running() -> bool:
    """Whether this process has a JVM, which is started once."""
    return SparkContext._gateway is not None


def launch(conf: Mapping[str, str], *, verbose: bool) -> None:
    """Start the JVM. Its output is kept until `show_output`, or shown at once if `verbose`.

    Raises pyspark's error, with the reason as a note.
    """
    settings = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        settings.set(key, value)
    if verbose:
        SparkContext._ensure_initialized(gateway=_launch(settings, {"stdout": _STDERR}))
        return
    read, write = os.pipe()
    output = Output(os.fdopen(read, "rb"))
    try:
        try:
            gateway = _launch(settings, {"stdout": write, "stderr": subprocess.STDOUT})
        finally:
            os.close(write)
    except Exception as error:
        error.add_note(output.reason())
        raise
    SparkContext._ensure_initialized(gateway=gateway)
    _output.append(output)


def show_output() -> None:
    """The session is up."""
    while _output:
        _output.pop().pass_on()


def end(patience_s: float) -> bool:
    """End the JVM of this process and wait for it. Returns whether it has ended."""
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return False
    gateway.shutdown()
    process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = None
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def kill() -> None:
    """End the JVM of this process at once."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()

"""Tasks for tests of the worker. Each writes what it does to the file of the variable WORKER_EVENTS."""

import asyncio
import ctypes
import logging
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from crossdock import App, Reschedule, Snooze, progress
from crossdock.app.context import current_job, lease_lost

app = App(name="worker-tests")
log = logging.getLogger(__name__)


def note(*words: object) -> None:
    """Append a line. Lines of several processes do not mix."""
    line = " ".join(map(str, words)) + "\n"
    with open(os.environ["WORKER_EVENTS"], "ab", buffering=0) as file:
        file.write(line.encode())


def gate(name: str) -> Path:
    """A file that a test creates to let tasks go on."""
    return Path(os.environ["WORKER_EVENTS"]).parent / f"gate-{name}"


def wait_for_gate(name: str) -> None:
    while not gate(name).exists():
        time.sleep(0.01)


@app.task
def mark(word: str) -> None:
    note("mark", word)


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
async def add_async(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@app.task(queue="other")
def other(word: str) -> None:
    note("other", word)


@app.task(retries=2)
def fail(text: str) -> None:
    note("fail", current_job().attempt)
    raise ValueError(text)


@app.task
def hold(name: str) -> None:
    note("start", name, os.getpid())
    wait_for_gate(name)
    note("end", name)


@app.task
async def hold_async(name: str) -> None:
    note("start", name, os.getpid())
    try:
        while not gate(name).exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("cancelled", name, lease_lost().is_set())
        raise
    note("end", name)


@app.task
def hold_interpreter(name: str, seconds: float) -> None:
    """Hold the interpreter: no other thread of this process runs meanwhile."""
    note("start", name)
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))
    note("end", name)


@app.task
def briefly(name: str) -> None:
    note("start", name)
    time.sleep(0.002)
    note("end", name)


@app.task
def until_lost(name: str) -> None:
    note("start", name, os.getpid())
    lease_lost().wait()
    note("lost", name)


@app.task
def pid(name: str) -> None:
    note("pid", name, os.getpid())


@app.task(timeout=0.3, retries=1)
def too_long(name: str) -> None:
    """Ends when the worker raises an exception in its thread."""
    note("start", name, os.getpid())
    while True:
        time.sleep(0.01)


@app.task(timeout=0.3, retries=1)
def stuck(name: str) -> None:
    """Nothing can interrupt it."""
    note("start", name, os.getpid())
    threading.Event().wait()


@app.task(timeout=0.3, retries=1)
async def too_long_async(name: str) -> None:
    note("start", name, os.getpid())
    await asyncio.sleep(3_600)


@app.task
def kill_self(name: str, number: int) -> None:
    note("start", name, os.getpid())
    os.kill(os.getpid(), number)
    threading.Event().wait()


@app.task
def crash(name: str, pause_s: float = 0.0) -> None:
    note("start", name, os.getpid())
    time.sleep(pause_s)
    ctypes.string_at(0)


@app.task
def leave(name: str, code: int) -> None:
    note("start", name, os.getpid())
    os._exit(code)


@app.task(retries=0)
def call_exit(code: int) -> None:
    sys.exit(code)


@app.task
def fork(name: str) -> None:
    """Both processes return from the task."""
    child = os.fork()
    note("parent" if child else "child", name)
    if child:
        os.waitpid(child, 0)


@app.task
def say(text: str) -> None:
    print(text)
    print(text, file=sys.stderr)
    os.write(1, b"direct\n")
    note("read", repr(sys.stdin.read()))
    log.info("a line of %s", text)


@app.task
def grow(mebibytes: int) -> None:
    _kept.append(b"x" * (mebibytes * 1024 * 1024))
    note("grown", os.getpid())


_kept: list[bytes] = []


@app.task
def leave_files(name: str) -> None:
    note("files", name, sorted(path.name for path in Path.cwd().iterdir()), Path.cwd(), tempfile.gettempdir())
    Path(f"file-{name}").write_text(name)
    (Path(f"folder-{name}") / "inner").mkdir(parents=True)


@app.task
def halfway(name: str) -> None:
    progress(0.5, "half")
    note("start", name)
    wait_for_gate(name)


@app.task
def later(name: str) -> Snooze | None:
    note("later", name, current_job().attempt)
    return Snooze("0s") if current_job().attempt == 1 else None


@app.task
def split(number: int) -> Reschedule | None:
    note("split", number)
    return Reschedule(split, number - 1) if number else None


#: The kinds of the peers of all protocols. The kind of a Workq job is the name of its queue.
@app.task(kinds=("F", "M", "Q", "R", "work"))
def foreign(payload: str) -> None:
    note("foreign", current_job().origin, current_job().queue)

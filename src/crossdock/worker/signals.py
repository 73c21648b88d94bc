"""Signals of a worker, as Faktory's and Sidekiq's workers have them."""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol


class Signalled(Protocol):
    def quiet(self, why: str) -> None: ...

    def terminate(self, why: str) -> None: ...

    def dump_stacks(self) -> None: ...


def install(worker: Signalled) -> None:
    """Must be called on the event loop, in the main thread."""
    actions: dict[str, Callable[[], None]] = {
        "SIGTERM": partial(worker.terminate, "it got SIGTERM"),
        "SIGINT": partial(worker.terminate, "it got SIGINT"),
        "SIGHUP": partial(worker.terminate, "it got SIGHUP"),
        "SIGBREAK": partial(worker.terminate, "it got SIGBREAK"),
        "SIGTSTP": partial(worker.quiet, "it got SIGTSTP"),
        "SIGTTIN": worker.dump_stacks,
    }
    loop = asyncio.get_running_loop()
    for name, action in actions.items():
        number = getattr(signal, name, None)
        if number is None:
            continue
        if os.name == "posix":
            loop.add_signal_handler(number, action)
        else:

            def handle(number: int, frame: Any, action: Callable[[], None] = action) -> None:
                loop.call_soon_threadsafe(action)

            signal.signal(number, handle)


def signals_text(grace_s: float) -> str:
    """What each signal does, for the log."""
    stop = f"finish within {grace_s:g} s and stop, twice: stop now"
    if os.name != "posix":
        return f"Ctrl-C: {stop}"
    return f"signals: TERM or INT: {stop}; TSTP: fetch no more jobs; TTIN: print all stacks"

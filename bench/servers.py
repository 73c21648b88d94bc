"""The servers to compare: Crossdock, beanstalkd, the yardstick, and servers that are already running."""

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from bench.process import Process, ServerFailed, clean_environment, free_port
from bench.target import Target

#: All listeners of a server. The measured one is open, the others are off.
_PROTOCOLS: Final = ("faktory", "workq", "masenko", "redis", "http")

#: Loads named after their clients, and the listener they connect to.
_BEHIND: Final = {"qless": "redis", "resqu": "redis"}
_LISTENER: Final = re.compile(r"^ +(\w+) +(\S+):(\d+)$", re.MULTILINE)
_READY: Final = re.compile(r"^ready", re.MULTILINE)


class Contestant(msgspec.Struct, frozen=True):
    """A server to measure. `start` gets an empty folder and runs the server within a `with` block."""

    name: str
    start: Callable[[Path], AbstractContextManager[Target]]
    is_ours: bool = True  #: False: the server keeps running, so the load removes its jobs


#: The load may be delayed before its HELLO; the server must not drop it as a slow client.
_PATIENT: Final = {"faktory.handshake_s": "60"}


class Crossdock(Process):
    """`folder` is a data folder beside the server's log; started on it again, the server finds its jobs."""

    def __init__(
        self,
        folder: Path,
        durability: str = "always",
        protocol: str = "faktory",
        settings: Mapping[str, str] | None = None,
        beside: str = "",
    ) -> None:
        """`settings` by their full names (`lake.on`). `beside`: a second listener to open."""
        opened = _BEHIND.get(protocol, protocol)
        where = dict.fromkeys(_PROTOCOLS, "off") | dict.fromkeys(filter(None, (opened, beside)), "127.0.0.1:0")
        super().__init__(
            [
                sys.executable, "-m", "crossdock", "up",
                "--data", str(folder / "data"),
                *(word for name, address in where.items() for word in ("--listen", f"{name}={address}")),
                "--journal-durability", durability,
            ],
            folder,
            clean_environment()
            | {
                f"CROSSDOCK_{name.replace('.', '_').upper()}": value
                for name, value in (_PATIENT | dict(settings or {})).items()
            },
        )  # fmt: skip
        try:
            self.wait_until(lambda: _READY.search(self.said()) is not None, "line that begins with ready")
            listeners = {name: (host, int(port)) for name, host, port in _LISTENER.findall(self.said())}
            if set(listeners) != {opened, beside or opened}:
                raise ServerFailed(f"the server opened other listeners than {opened}: {self.said()}")
            self.target = Target(protocol, *listeners[opened], (settings or {}).get(f"{opened}.password", ""))
            self.beside = Target(beside, *listeners[beside]) if beside else None
            self.await_hello(self.target)
        except BaseException:
            self.kill()
            raise


@contextmanager
def _crossdock(durability: str, protocol: str, folder: Path) -> Iterator[Target]:
    with Crossdock(folder, durability, protocol) as server:
        yield server.target


def crossdock(durability: str, protocol: str = "faktory") -> Contestant:
    return Contestant(f"Crossdock {durability}", partial(_crossdock, durability, protocol))


@contextmanager
def _other(protocol: str, command: Callable[[int, Path], list[str]], folder: Path) -> Iterator[Target]:
    target = Target(protocol, "127.0.0.1", free_port())
    with Process(command(target.port, folder), folder) as process:
        process.await_hello(target)
        yield target


def beanstalkds() -> list[Contestant]:
    """beanstalkd in memory, with a log synced every 50 ms, and with a log synced before each reply.

    Empty if beanstalkd is not installed.
    """
    program = shutil.which("beanstalkd")
    if program is None:
        return []

    def contestant(name: str, *flags: str) -> Contestant:
        def command(port: int, folder: Path) -> list[str]:
            log = ["-b", str(folder)] if flags else []
            return [program, "-l", "127.0.0.1", "-p", str(port), *log, *flags[1:]]

        return Contestant(name, partial(_other, "beanstalkd", command))

    return [
        contestant("beanstalkd in memory"),
        contestant("beanstalkd -b", "-b"),
        contestant("beanstalkd -b -f 0", "-b", "-f", "0"),
    ]


def yardstick(program: Path) -> Contestant:
    """`program PORT sync FILE`: a server with the bare shape of the hot path."""

    def command(port: int, folder: Path) -> list[str]:
        return [sys.executable, str(program.resolve()), str(port), "sync", str(folder / "yardstick.db")]

    return Contestant("yardstick", partial(_other, "faktory", command))


def running(target: Target) -> Contestant:
    @contextmanager
    def start(_: Path) -> Iterator[Target]:
        yield target

    scheme = _BEHIND.get(target.protocol, target.protocol)
    return Contestant(f"{scheme}://{target.host}:{target.port}", start, is_ours=False)

"""How commands print: JSON, notes on stderr, progress, and questions."""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec

from crossdock.cli.render import times
from crossdock.model.errors import CrossdockError
from crossdock.protocols.timestamps import stamp

if TYPE_CHECKING:
    from crossdock.journal.files import Progress


class NothingDone(CrossdockError):
    """Nothing was changed, or not everything; the text says why."""


def print_json(answer: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())


def note(sentence: str) -> None:
    """On stderr, apart from the output that programs read."""
    print(sentence, file=sys.stderr)


def width() -> int | None:
    """Columns of the terminal. None: the output is not a terminal, and lines may have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def agreed(question: str) -> bool:
    """Ask on stderr. Raises NothingDone if stdin is not a terminal and has no answer."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise NothingDone("nothing was changed: stdin is not a terminal; pass --yes") from None


@contextmanager
def meter(*, lines: bool = False) -> "Iterator[Progress]":
    """Progress of long work, on one line of a terminal that is cleared at the end. Without a terminal it is silent, or
    prints a line per step if `lines` is set.

    SIGTERM interrupts the work as Ctrl-C does, so that unfinished files are removed.
    """
    shown, logged = 0, ""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)

    def show(what: str, done: int, of: int) -> None:
        nonlocal shown
        line = f"{what} {100 * done // max(of, 1)} %"
        sys.stderr.write("\r" + line.ljust(shown))
        sys.stderr.flush()
        shown = len(line)

    def nothing(what: str, done: int, of: int) -> None:
        pass

    def log(what: str, done: int, of: int) -> None:
        nonlocal logged
        if what != logged:
            logged = what
            note(f"{times.stamp(stamp(time.time()), seconds=True)} {what}")

    try:
        yield show if sys.stderr.isatty() else log if lines else nothing
    finally:
        signal.signal(signal.SIGTERM, before)
        if shown:
            sys.stderr.write("\r" + " " * shown + "\r")
            sys.stderr.flush()

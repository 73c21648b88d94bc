"""ATOMIC … DONE: a transaction, applied at DONE as one change or not at all (masenko.md section 6).

Each line is parsed when it arrives, which spreads the work of a long transaction over many passes. What depends on the
state, such as leases and blockers, is checked at DONE.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from crossdock.engine.queries.jobs import jobs_by_number
from crossdock.model.commands.core import Claim, DrawNumbers, Succeed, Transaction
from crossdock.model.job import Extra, Links, Number, Spec, Token
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.masenko import commands, push
from crossdock.protocols.masenko.commands import newest, shown
from crossdock.protocols.masenko.messages import ECHO, OK, VIA, InvalidRequest, error

#: The size limit of a transaction in upstream's log.
LOG_BYTES: Final = 1_000_000
_ACK_RECORD: Final = 2 + 1 + 4

#: Limits of an open transaction. Transactions that upstream would commit are far smaller.
LINES_AT_MOST: Final = 150_000
TEXT_BYTES: Final = 16 * 1024 * 1024
TOO_LONG: Final = f"transaction too long: at most {LINES_AT_MOST} lines and {TEXT_BYTES} bytes"

_COMMIT: Final = "commit transaction: write to WAL: serialize operation: "


class Done(NamedTuple):
    reply: bytes
    settled: tuple[Number, ...] = ()  #: leases that ended with it


class Atomic:
    """One open transaction."""

    __slots__ = ("_lines", "_pushes", "_steps", "_text", "_too_big", "_written", "_wrong", "took")

    def __init__(self) -> None:
        #: An int is the ID of an ACK. None is a task that is not kept, because the transaction will fail.
        self._steps: list[Spec | tuple[Spec, tuple[int, ...]] | int | None] = []
        self._wrong = ""  #: the error of the first invalid line; later lines are not kept
        self._too_big = ""  #: the error of the first step that upstream could not write
        self._lines = self._text = self._pushes = self._written = 0
        self.took = 0.0  #: seconds for which its long lines held other connections up

    def add(self, verb: bytes, body: bytes) -> None:
        """Add a line before DONE. The verb is in capitals."""
        self._lines += 1
        self._text += len(body)
        if self._lines > LINES_AT_MOST or self._text > TEXT_BYTES:
            self._steps.clear()
            self._wrong = TOO_LONG
        elif not self._wrong:
            self._read(verb, body)

    def _read(self, verb: bytes, body: bytes) -> None:
        try:
            if verb == b"PUSH":
                self._push(body)
            elif verb == b"ACK":
                self._steps.append(commands.read_ack(body, "ack"))
                self._write(_ACK_RECORD, "")
            else:
                self._wrong = f"{verb[:ECHO].decode('utf-8', 'replace')} is not allowed in transaction."
        except InvalidRequest as wrong:
            self._wrong = f"message {self._lines - 1}: {verb.decode()}: {wrong}"

    def _push(self, body: bytes) -> None:
        read = push.read(body)
        for blocker in read.blockers:
            if blocker == 0:
                raise InvalidRequest("cannot self reference in blocked by")
            if blocker < -self._pushes:
                raise InvalidRequest("invalid relative task position in blocked by")
        self._pushes += 1
        self._write(read.size, read.too_big)
        if self._too_big:
            self._steps.append(None)
        else:
            self._steps.append((read.spec, read.blockers) if read.blockers else read.spec)

    def _write(self, size: int, too_big: str) -> None:
        self._written += size
        if not self._too_big:
            if too_big:
                self._too_big = f"{_COMMIT}input: {too_big}"
            elif self._written > LOG_BYTES:
                self._too_big = f"{_COMMIT}buffer too small: size"

    def done(self, dispatcher: Dispatcher, held: Mapping[Number, Token]) -> Done:
        """Apply the transaction. After an error the numbers that upstream would have drawn are used up (masenko.md
        section 3.2)."""
        steps: list[Spec | Succeed] = []
        acked: dict[Number, int] = {}
        pushes = 0
        for step in self._steps:
            if not isinstance(step, int):
                pushes += 1
                if step is not None:
                    steps.append(step if isinstance(step, Spec) else blocked(dispatcher, *step))
                continue
            number = newest(step, dispatcher, held)
            if number is None:
                return self._refuse(dispatcher, pushes, f"task {step} not acquired")
            if number not in acked:  # a second ACK counts as done
                acked[number] = step
                steps.append(Succeed("", Claim(VIA, "", (number, held[number]), number=number)))
        wrong = self._wrong or self._too_big
        if wrong:
            return self._refuse(dispatcher, pushes, wrong)
        no_room = dispatcher.no_room(pushes) if pushes else None
        if no_room is not None:
            return Done(error(no_room))
        if not steps:
            return Done(OK)
        outcome = dispatcher.do(Transaction(VIA, steps))
        if outcome.refused >= 0:  # the lease had ended without the session's knowledge, for example by an operator
            lost = steps[outcome.refused]
            number = lost.claim.number if isinstance(lost, Succeed) else 0
            return Done(error(f"task {shown(number)} not acquired"), (number,))
        ids = b",".join(b"%d" % shown(number) for number in outcome.numbers)
        return Done(b'OK {"ids":[%b]}\n' % ids if ids else OK, tuple(acked))

    @staticmethod
    def _refuse(dispatcher: Dispatcher, pushes: int, wrong: str) -> Done:
        if pushes:
            dispatcher.do(DrawNumbers(pushes))
        return Done(error(wrong))


def blocked(dispatcher: Dispatcher, spec: Spec, blockers: tuple[int, ...]) -> Spec:
    """The spec with its dependencies. IDs become job numbers, IDs of no live job are dropped, positions are kept."""
    live = jobs_by_number(dispatcher.state)
    depends_on = tuple(
        number
        for number in (newest(each, dispatcher, live) if each > 0 else each for each in blockers)
        if number is not None
    )
    return (
        replace(spec, extra=replace(spec.extra or Extra(), links=Links(depends_on=depends_on))) if depends_on else spec
    )

"""The three phases of any protocol: push all jobs, take all, settle all. A protocol only supplies the requests."""

from collections.abc import Sequence
from typing import Final, Protocol

from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.replies import Whole

PAYLOAD: Final = b"x" * 100


class Dialect(Protocol):
    names: tuple[str, str, str]  #: of the phases, in the terms of the protocol
    is_bound: bool  #: only the connection that took a job may settle it

    def pushes(self, jobs: int) -> list[bytes]:
        """The requests that push this many jobs, each of 100 bytes."""

    @property
    def pushed(self) -> Whole: ...

    def take(self) -> bytes:
        """The request for a job."""

    @property
    def taken(self) -> Whole: ...

    def settle(self, reply: bytes) -> bytes:
        """The request that settles the job of this reply. Checks first that it is a job that was pushed."""

    @property
    def settled(self) -> Whole: ...


class ProtocolLoad:
    def __init__(self, lanes: Sequence[Lane], dialect: Dialect) -> None:
        self._lanes = lanes
        self._dialect = dialect

    async def step(self, name: str, size: int) -> Run:
        if name != "phases":
            raise ValueError(f"no such step: {name}")
        dialect = self._dialect
        push = Phase(dialect.pushes(size), dialect.pushed)
        push_s = await push.run(self._lanes)
        take = Phase([dialect.take()] * size, dialect.taken, keep=True)
        take_s = await take.run(self._lanes)
        if dialect.is_bound:
            own = {lane: [dialect.settle(reply) for reply in lane.kept] for lane in self._lanes}
            settle = Phase((), dialect.settled, own=own)
        else:
            settle = Phase([dialect.settle(reply) for reply in take.replies], dialect.settled)
        settle_s = await settle.run(self._lanes)
        first, second, third = dialect.names
        return {
            first: figures(size, push_s, push.took),
            second: figures(size, take_s, take.took),
            third: figures(size, settle_s, settle.took),
        }

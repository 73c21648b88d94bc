"""The random choices of one command. The engine makes them; the reference checks that they are allowed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Draws:
    jitter: int = 0  #: of a retry, 0 to 29
    queues: Sequence[str] = ()  #: in which a lease at random found jobs, in this order
    jids: Sequence[str] = ()  #: of the jobs that schedules pushed, in this order


NO_DRAWS: Final = Draws()

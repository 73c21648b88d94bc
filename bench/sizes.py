"""How much of everything: the sizes the figures are asked at, and small ones that only show that the bench works."""

from typing import Final

import msgspec


class Sizes(msgspec.Struct, frozen=True):
    jobs: int = 60_000  #: in each phase; five runs of them do not make the server fold its journal
    runs: int = 5
    tries: int = 6  #: of a run from which others take too much of the processors' time
    connections: tuple[int, ...] = (64, 256)
    calls: int = 1_000  #: of PUSHB; the other connection gets in one PUSH a call, and a p99.9 needs 1,000 of them
    few: int = 1_000  #: the small backlog
    many: int = 1_000_000  #: the large one; also the jobs, and the events, of a restart
    idle: int = 5_000  #: connections


QUICK: Final = Sizes(jobs=2_000, runs=1, tries=1, calls=5, few=500, many=5_000, idle=100)

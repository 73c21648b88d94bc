"""The sizes of all measurements, and small sizes that only show that the bench works."""

from typing import Final

import msgspec


class Sizes(msgspec.Struct, frozen=True):
    jobs: int = 60_000  #: in each phase; five runs do not start a compaction
    runs: int = 5
    tries: int = 6  #: of a run that loses too much processor time to other machines
    connections: tuple[int, ...] = (64, 256)
    calls: int = 1_000  #: of PUSHB; the other connection makes one PUSH per call, and a p99.9 needs 1,000
    few: int = 1_000  #: the small backlog
    many: int = 1_000_000  #: the large backlog; also the jobs and the events of a restart
    idle: int = 5_000  #: connections


QUICK: Final = Sizes(jobs=2_000, runs=1, tries=1, calls=5, few=500, many=5_000, idle=100)

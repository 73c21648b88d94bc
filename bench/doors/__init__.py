"""The loads of the doors besides Faktory's, one file each."""

from collections.abc import Callable
from typing import Final

from bench.doors.masenko import Masenko
from bench.doors.phases import Dialect
from bench.doors.qless import Qless
from bench.doors.workq import Workq

#: Each gets the name of a queue of its own.
DOORS: Final[dict[str, Callable[[str], Dialect]]] = {
    "masenko": Masenko,
    "qless": Qless,
    "workq": Workq,
}

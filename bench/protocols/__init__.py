"""The loads of the protocols other than Faktory, one file each."""

from collections.abc import Callable
from typing import Final

from bench.protocols.masenko import Masenko
from bench.protocols.phases import Dialect
from bench.protocols.qless import Qless
from bench.protocols.workq import Workq

#: Each is built with the name of its own queue.
PROTOCOLS: Final[dict[str, Callable[[str], Dialect]]] = {
    "masenko": Masenko,
    "qless": Qless,
    "workq": Workq,
}

"""The load on beanstalkd: puts with bodies of the same length as the Faktory jobs."""

from collections.abc import Sequence
from typing import Final

from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.replies import Unexpected, inserted

_BODY_BYTES: Final = 240
_PUT: Final = b"put 1024 0 1800 %d\r\n%b\r\n" % (_BODY_BYTES, b"x" * _BODY_BYTES)


class BeanstalkdLoad:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes

    async def step(self, name: str, size: int) -> Run:
        if name != "put":
            raise ValueError(f"no such step: {name}")
        phase = Phase([_PUT] * size, inserted, keep=True)
        seconds = await phase.run(self._lanes)
        if len(set(phase.replies)) != size:
            raise Unexpected("two puts were answered with the same id")
        return {"put": figures(size, seconds, phase.took)}

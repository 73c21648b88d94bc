"""Count the bytecode instructions of a call. The count does not depend on the load of the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def steps(act: Callable[[], T]) -> tuple[int, T]:
    """The number of instructions, and the result of `act`."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = act()
    finally:
        sys.settrace(before)
    return count, result

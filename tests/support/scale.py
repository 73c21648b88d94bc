"""Number of examples of a random test: few in `make test`, many in `make test-long`."""

import os
from typing import Final

LONG: Final = os.environ.get("CROSSDOCK_TEST_LONG") == "1"


def tries(short: int, long: int) -> int:
    return long if LONG else short

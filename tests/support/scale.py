"""How often a random test tries: a few times in `make test`, often in `make test-long`."""

import os
from typing import Final

LONG: Final = os.environ.get("CROSSDOCK_TEST_LONG") == "1"


def tries(short: int, long: int) -> int:
    return long if LONG else short

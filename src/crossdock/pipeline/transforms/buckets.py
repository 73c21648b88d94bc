"""Buckets of durations that grow by 4 %. Percentiles come from counts in them, which merge by addition."""

from typing import Final

GAMMA: Final = 1.04
#: The bucket of values of zero and below.
NOTHING: Final = -10_000


def value_of(bucket: int) -> float:
    """A value within 1.97 % of every value in the bucket."""
    return 0.0 if bucket == NOTHING else GAMMA**bucket * 2 / (GAMMA + 1)

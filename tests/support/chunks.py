"""A byte stream cut into chunks at any positions."""

from itertools import pairwise

from hypothesis import strategies as st

ends = st.sampled_from([b"\n", b"\r\n"])


cuts = st.lists(st.integers(0, 2_000), max_size=12)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(sort_key, len(stream)) for sort_key in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]

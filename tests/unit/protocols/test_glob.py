"""Redis globs against a naive implementation, and against patterns made to be slow."""

import time
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.protocols.glob import Glob


def naive(pattern: bytes, text: bytes) -> bool:
    """A glob as Redis defines it, one byte at a time, with backtracking at each star."""
    if not pattern:
        return not text
    char, rest = pattern[:1], pattern[1:]
    if char == b"*":
        return any(naive(rest, text[i:]) for i in range(len(text) + 1))
    if not text:
        return False
    if char == b"?":
        return naive(rest, text[1:])
    if char == b"[":
        matched, rest = naive_class(rest, text[0])
        return matched and naive(rest, text[1:])
    if char == b"\\" and rest:
        char, rest = rest[:1], rest[1:]
    return char == text[:1] and naive(rest, text[1:])


def naive_class(pattern: bytes, char: int) -> tuple[bool, bytes]:
    """Is the byte in the class, and what follows the class? An unclosed class extends to the end."""
    negated = pattern[:1] == b"^"
    i, matched = int(negated), False
    while i < len(pattern) and pattern[i] != ord("]"):
        if pattern[i] == ord("\\") and i + 1 < len(pattern):
            i += 1
            matched |= pattern[i] == char
        elif pattern[i + 1 : i + 2] == b"-" and i + 2 < len(pattern):
            low, high = sorted((pattern[i], pattern[i + 2]))
            matched |= low <= char <= high
            i += 2
        else:
            matched |= pattern[i] == char
        i += 1
    return matched is not negated, pattern[i + 1 :]


patterns = st.lists(
    st.sampled_from(
        [b"*", b"?", b"??", b"a", b"b", b"-", b"[", b"]", b"^", b"\\", b"[a-c]", b"[^a]", b"[]", b"\xff", b"\n"]
    ),
    max_size=8,
).map(b"".join)
texts = st.lists(
    st.sampled_from([b"a", b"b", b"c", b"-", b"[", b"]", b"^", b"*", b"?", b"\\", b"\xff", b"\n"]), max_size=8
).map(b"".join)


@given(patterns, texts)
@example(b"[a-", b"a")
@example(b"[\\", b"\\")
@example(b"a*a", b"a")
@example(b"[^]", b"a")
@example(b"[c-a]", b"b")
@example(b"[--a]", b"5")
@example(b"[&&||~~]", b"~")
@example(b"\\", b"\\")
@example(b"**", b"")
def test_globs_match_like_redis(pattern: bytes, text: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # FutureWarning of re for character classes that may change their meaning
        assert Glob(pattern).matches(text) is naive(pattern, text)


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_globs_of_any_bytes_match_like_redis(pattern: bytes, text: bytes) -> None:
    assert Glob(pattern).matches(text) is naive(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (b"*uid:123*", b'{"args":["uid:123"]}', True),
        (b"uid:123", b'{"args":["uid:123"]}', False),  # the entire text must match
        (b'*"args":[[]"x"]*', b'{"args":["x"]}', True),
        (b'*"args":\\["x"\\]*', b'{"args":["x"]}', True),
        (b'*"args":["x"]*', b'{"args":["x"]}', False),  # a class
        (b"h[^e]llo", b"hallo", True),
        (b"h[^e]llo", b"hello", False),
        (b"h?llo", b"h\nllo", True),
        (b"h?llo", "hällo".encode(), False),  # bytes, not characters
        (b"", b"", True),
        (b"", b"a", False),
        (b"*", b"", True),
    ],
)
def test_examples(pattern: bytes, text: bytes, matches: bool) -> None:
    assert Glob(pattern).matches(text) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        b"*a*a*a*a*a*b",
        b"*a" * 400 + b"*b",
        b"*" * 999 + b"b",
        b"*" + b"?" * 990 + b"b*",
        b"*a" + b"?" * 990 + b"b*",
        b"*" + b"a" * 990 + b"b*",
        b"*" + b"[ab]" * 32 + b"c*",
    ],
)
def test_no_pattern_takes_long(pattern: bytes) -> None:
    """With backtracking the first of these would take years. The limit here is generous for any machine."""
    glob, text = Glob(pattern), b"a" * 200_000
    began = time.process_time()
    assert not glob.matches(text)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("pattern", "too_slow"),
    [
        (b"*" + b"a?" * 32 + b"*", False),
        (b"*" + b"a?" * 32 + b"a*", True),
        (b"*" + b"[a-z]" * 64 + b"*" + b"[^b]" * 64 + b"*", False),
        (b"*[a-z]" + b"x" * 64 + b"*", True),
        (b"*\\[" + b"x" * 4_000 + b"\\?*", False),
        (b"?" * 4_000 + b"*" + b"?" * 4_000, False),
    ],
)
def test_which_patterns_are_too_slow(pattern: bytes, too_slow: bool) -> None:
    assert Glob(pattern).too_slow is too_slow

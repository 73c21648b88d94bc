"""The lock name of a unique job: the same for every spelling of one job, and different for other jobs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.job_spec import UNIQUE_BYTES, InvalidJob, unique_name

numbers = st.sampled_from(["0", "-0", "1", "1.0", "1e0", "10", "12345678901234567890", "12345678901234567891", "0.1"])
texts = st.sampled_from(["", "a", "1", "a, b", "[ 1 ]", "ä", "\\", '"', "\x00", "\x7f", "{", "1.0", "😀"])
values = st.recursive(
    numbers.map(lambda text: ("number", text)) | texts | st.sampled_from([True, False, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """JSON of the value with any blanks, key order and escapes."""
    blank = draw(st.sampled_from(["", "", " ", "\t", "  "]))
    if isinstance(value, tuple):
        return str(value[1])
    if isinstance(value, str):
        if draw(st.booleans()):
            return "".join(['"', *(f"\\u{unit:04x}" for unit in _utf16(value)), '"'])
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    if isinstance(value, list):
        inside = f"{blank},{blank}".join(draw(spellings(each)) for each in value)
        return f"[{blank}{inside}{blank}]"
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        inside = f"{blank},{blank}".join(
            f"{draw(spellings(key))}{blank}:{blank}{draw(spellings(value[key]))}" for key in keys
        )
        return f"{{{blank}{inside}{blank}}}"
    return json.dumps(value)


def _utf16(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


def name(args: str, kind: str = "T", queue: str = "q") -> str:
    return unique_name(kind, args.encode(), queue)


@given(st.data(), st.lists(values, max_size=3))
def test_all_spellings_of_a_job_have_one_name(data: st.DataObject, args: list[Any]) -> None:
    one, other = (data.draw(spellings(args)) for _ in range(2))
    assert name(one) == name(other)


@given(st.data(), st.lists(values, max_size=3), st.lists(values, max_size=3))
def test_different_jobs_have_different_names(data: st.DataObject, one: list[Any], other: list[Any]) -> None:
    same = repr(_sorted(one)) == repr(_sorted(other))
    assert (name(data.draw(spellings(one))) == name(data.draw(spellings(other)))) is same


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _sorted(each)) for key, each in sorted(value.items())]
    return ["list", *map(_sorted, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("long", ["", "x" * 100])
def test_kind_and_queue_are_separate_parts_of_the_name(long: str) -> None:
    args = json.dumps([long])
    names = {name(args, kind, queue) for kind in ("a", "ab", "b\0q") for queue in ("q", "qa", "b")}
    assert len(names) == 9
    assert name('["a"]', "T\0x") != name('["a\\u0000T"]', "x")


def test_the_length_of_a_name_is_limited() -> None:
    assert len(name(json.dumps(["x" * 1_000_000]))) <= 48


@pytest.mark.parametrize("begin", [r'"\u0041"', '{"a":1},1.5'])
def test_args_that_are_normalized_value_by_value_are_limited(begin: str) -> None:
    few, many = (f"[{begin}{',1' * (length // 2)}]" for length in (UNIQUE_BYTES - 100, UNIQUE_BYTES))
    assert name(few) != name(few.replace(",1]", ",2]"))
    with pytest.raises(InvalidJob, match=r"custom\.unique_for takes no args of more than 262144 bytes with escapes"):
        name(many)
    assert name(many.replace(begin, "1")) != name(few)

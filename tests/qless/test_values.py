"""Numbers and JSON as in Lua and cjson (qless.md section 3)."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.redis.qless import cjson, cjson_reader
from crossdock.protocols.redis.qless.cjson_reader import Reader


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0),
        (" 12\t", 12.0),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7.0),
        ("0x10", 16.0),
        ("-0X1f", -31.0),
        ("0x1p3", 8.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1e999", math.inf),
    ],
)
def test_numbers_are_parsed_like_tonumber(text: str, value: float) -> None:
    assert cjson_reader.number(text) == value


@pytest.mark.parametrize("text", ["", " ", "x", "1x", "1 2", "0x", "e5", "1e", "--1", "1_000", "\u0661", "nil", "."])
def test_other_texts_are_not_numbers(text: str) -> None:
    assert cjson_reader.number(text) is None


def test_nan_is_parsed_as_a_number() -> None:
    assert math.isnan(cjson_reader.number("nan") or 0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1352375269.1234567, "1352375269.1235"),
        (1.2e17, "1.2e+17"),
        (5.0, "5"),
        (-0.5, "-0.5"),
        (2.3571428571428573, "2.3571428571429"),
    ],
)
def test_a_number_is_written_with_fourteen_digits(value: float, text: str) -> None:
    assert cjson.write(value) == cjson_reader.show(value) == text


@pytest.mark.parametrize(
    ("value", "cut"), [(63.75, 63), (-2.7, -2), (math.inf, 2**63 - 1), (-math.inf, -(2**63)), (1e30, 2**63 - 1)]
)
def test_an_integer_reply_is_truncated_toward_zero(value: float, cut: int) -> None:
    assert cjson_reader.truncated(value) == cut


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "bad argument #1 to 'decode' (string expected, got nil)"),
        ("", "Expected value but found T_END at character 1"),
        ("{]", "Expected object key string but found T_ARR_END at character 2"),
        ("[}", "Expected value but found T_OBJ_END at character 2"),
        ("x", "Expected value but found invalid token at character 1"),
        ("[1 2]", "Expected comma or array end but found T_NUMBER at character 4"),
        ('{"a" 1}', "Expected colon but found T_NUMBER at character 6"),
        ('{"a":1 "b"}', "Expected comma or object end but found T_STRING at character 8"),
        ("{} {}", "Expected the end but found T_OBJ_BEGIN at character 4"),
        ("[1,]", "Expected value but found T_ARR_END at character 4"),
        ('"a', "Expected value but found unexpected end of string at character 3"),
        ('"\\x"', "Expected value but found invalid escape code at character 2"),
        ('"\\u12"', "Expected value but found invalid unicode escape code at character 2"),
        ("-", "Expected value but found invalid number at character 1"),
        ("[" * 65 + "]" * 65, "Found too many nested data structures (65) at character"),
    ],
)
def test_invalid_json_has_the_errors_of_cjson(text: str | None, message: str) -> None:
    with pytest.raises(cjson.Malformed) as error:
        cjson.read(text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1f", 31.0),
        ("[inf]", [math.inf]),
        (chr(34) + "a\tb" + chr(34), "a\tb"),
        (" 1 ", 1.0),
        ("null", cjson.NULL),
        ("[null]", [cjson.NULL]),
    ],
)
def test_more_than_strict_json_is_accepted(text: str, value: Any) -> None:
    assert cjson.read(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "{}"),
        ({}, "{}"),
        ({"a": []}, '{"a":{}}'),
        ([True, False, None], "[true,false,null]"),
        ("a/b", '"a\\/b"'),
        ('"\\', '"\\"\\\\"'),
        ("\x7f\x01\n", '"\\u007f\\u0001\\n"'),
        ("ünï", '"ünï"'),
        (math.inf, "1e999"),
    ],
)
def test_json_is_written_like_cjson(value: Any, text: str) -> None:
    assert cjson.write(value) == text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inside: st.lists(inside, min_size=1) | st.dictionaries(st.text(), inside, min_size=1),
    max_leaves=20,
)


@given(_JSON)
def test_written_json_can_be_read(value: Any) -> None:
    assert json.loads(cjson.write(value)) == value


@given(st.text(alphabet='{}[]":,\\ u01ae.-ntf\n', max_size=12))
def test_the_fast_and_the_slow_reader_agree(text: str) -> None:
    """What the fast reader accepts, the slow one reads the same. Both raise only Malformed."""
    try:
        slow = Reader(text).whole()
    except cjson.Malformed:
        with pytest.raises(cjson.Malformed):
            cjson.read(text)
    else:
        assert cjson.read(text) == slow or "nan" in text  # NaN is not equal to itself

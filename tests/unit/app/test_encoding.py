"""Arguments and results as JSON: types, order, and errors that name the argument."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, Field

from crossdock.app.encoding import Signature
from crossdock.app.errors import BadArgument, BadResult, BadTask
from crossdock.app.outcomes import Outcome, Retry


class Colour(Enum):
    RED = "red"


@dataclass
class Address:
    street: str
    number: int = 1


class Person(msgspec.Struct):
    name: str
    born: date


class Account(BaseModel):
    user_name: str = Field(alias="userName")
    since: datetime


class Plain:
    pass


class Point(NamedTuple):
    x: int
    y: int


class Options(TypedDict):
    size: int


def _through_json(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    signature = Signature("task", function)
    encoded = signature.encode(args, kwargs)
    elements = msgspec.json.decode(encoded.args, type=list[msgspec.Raw])
    named = {} if encoded.kwargs is None else msgspec.json.decode(encoded.kwargs)
    return signature.decode(elements, named)


def _takes(wanted: Any) -> Callable[..., Any]:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = wanted
    return function


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (int, 5),
        (int, 2**80),
        (float, 0.5),
        (str, "ä\x00"),
        (bytes, b"\xff\x00"),
        (Colour, Colour.RED),
        (Address, Address("Long Street", 7)),
        (Person, Person("Ada", date(1815, 12, 10))),
        (datetime, datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
        (timedelta, timedelta(minutes=3)),
        (UUID, UUID(int=5)),
        (Decimal, Decimal("0.10")),
        (Point, Point(1, 2)),
        (Options, {"size": 3}),
        (set[int], {1, 2}),
        (dict[int, Address], {1: Address("a")}),
        (list[Person | None], [None, Person("Ada", date(1815, 12, 10))]),
        (Account, Account(userName="ada", since=datetime(2026, 1, 1, tzinfo=UTC))),
        (list[Account], [Account(userName="ada", since=datetime(2026, 1, 1, tzinfo=UTC))]),
        (Account | int, Account(userName="ada", since=datetime(2026, 1, 1, tzinfo=UTC))),
        (Account | None, None),
        (Any, {"a": [1, None, "x"]}),
    ],
    ids=str,
)
def test_a_value_comes_back_as_its_type(wanted: Any, value: Any) -> None:
    assert _through_json(_takes(wanted), value) == ([value], {})


def test_named_arguments_become_positional_as_far_as_they_can() -> None:
    def function(a: int, b: int = 0, c: int = 0, *, d: int = 0) -> None: ...

    signature = Signature("task", function)
    assert signature.encode((1,), {"b": 2}) == signature.encode((), {"a": 1, "b": 2}) == signature.encode((1, 2), {})
    assert signature.encode((1,), {"c": 3, "d": 4}) == (msgspec.Raw(b"[1]"), msgspec.Raw(b'{"c":3,"d":4}'))
    assert _through_json(function, 1, c=3, d=4) == ([1], {"c": 3, "d": 4})


def test_any_number_of_arguments_are_decoded_by_their_type() -> None:
    def function(first: int, /, *rest: Colour, **named: Address) -> None: ...

    assert _through_json(function, 1, Colour.RED, Colour.RED, home=Address("a"), first=Address("b")) == (
        [1, Colour.RED, Colour.RED],
        {"home": Address("a"), "first": Address("b")},
    )
    with pytest.raises(BadArgument, match=r'^task: argument "rest\[1\]" does not match its type: Invalid enum value'):
        Signature("task", function).encode((1, Colour.RED, "blue"), {})
    with pytest.raises(BadArgument, match=r'^task: argument "work" does not match its type: Expected `object`'):
        Signature("task", function).encode((1,), {"work": 5})


def _welcome(user: Address, *, lang: str = "en") -> str:
    return lang


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, 'welcome: argument "user" is missing'),
        ((), {"lang": "de"}, 'welcome: argument "user" is missing'),
        ((1, 2), {}, "welcome: 2 positional arguments were given, at most 1 are taken"),
        ((Address("a"),), {"user": Address("a")}, 'welcome: argument "user" was given twice'),
        ((Address("a"),), {"land": "de"}, 'welcome: argument "land" is not taken; did you mean "lang"?'),
        ((Address("a"),), {"zzz": "de"}, 'welcome: argument "zzz" is not taken; known: "lang", "user"'),
        (
            (Plain(),),
            {},
            (
                'welcome: argument "user" cannot be encoded: Plain has no JSON form; '
                "use a dataclass, a msgspec struct or a pydantic model, or push an ID"
            ),
        ),
        ((42,), {}, 'welcome: argument "user" does not match its type: Expected `object`, got `int`'),
        (
            (Address("a", "b"),),  # type: ignore[arg-type]
            {},
            'welcome: argument "user" does not match its type: Expected `int`, got `str` - at `$.number`',
        ),
        (
            (Address("a"),),
            {"lang": "\ud800"},
            (
                'welcome: argument "lang" cannot be encoded: '
                "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed"
            ),
        ),
    ],
)
def test_a_wrong_argument_is_named(args: tuple[Any, ...], kwargs: dict[str, Any], text: str) -> None:
    with pytest.raises(BadArgument) as caught:
        Signature("welcome", _welcome).encode(args, kwargs)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"a": -float("inf")}], Address("x", float("nan"))])  # type: ignore[arg-type]
def test_numbers_that_json_lacks_are_refused(value: object) -> None:
    with pytest.raises(BadArgument, match=r'^task: argument "value" cannot be encoded: it contains nan or infinity'):
        Signature("task", _takes(Any)).encode((value,), {})


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(BadArgument, match=r'^task: argument "value" cannot be encoded: maximum recursion depth'):
        Signature("task", _takes(Any)).encode((value,), {})


def test_errors_of_a_model_are_one_line() -> None:
    signature = Signature("task", _takes(Account))
    with pytest.raises(BadArgument) as caught:
        signature.decode([msgspec.Raw(b'{"userName":5}')], {})
    assert str(caught.value) == (
        'task: argument "value" cannot be decoded: userName: Input should be a valid string; since: Field required'
    )
    with pytest.raises(BadArgument, match=r'^task: argument "value" cannot be decoded: Account.userName: Input should'):
        Signature("task", _takes(Account | int)).decode([msgspec.Raw(b'{"userName":5}')], {})


def test_an_argument_that_cannot_be_decoded_is_named() -> None:
    with pytest.raises(BadArgument) as caught:
        Signature("welcome", _welcome).decode([msgspec.Raw(b'{"street":5}')], {})
    assert str(caught.value) == (
        'welcome: argument "user" cannot be decoded: Expected `str`, got `int` - at `$.street`'
    )


def test_a_class_with_hostile_methods_is_an_error_of_its_argument() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @dataclass
    class Picky:
        x: int

        def __post_init__(self) -> None:
            if self.x > 1:
                raise Hostile

    value = Picky(1)
    value.x = 2
    with pytest.raises(BadArgument, match=r'^task: argument "value" does not match its type: Hostile$'):
        Signature("task", _takes(Picky)).encode((value,), {})


def test_annotations_may_name_types_that_come_later() -> None:
    signature = Signature("task", _takes("Later"))
    with pytest.raises(BadTask, match=r"^task: an annotation cannot be resolved: name 'Later' is not defined; import"):
        signature.encode((1,), {})
    globals()["Later"] = int
    try:
        assert bytes(signature.encode((1,), {}).args) == b"[1]"
    finally:
        del globals()["Later"]


def test_a_type_without_json_is_an_error_of_the_task() -> None:
    class Other:
        pass

    with pytest.raises(BadTask, match=r'^task: the type of argument "value" cannot be read from JSON: '):
        Signature("task", _takes(dict[Plain, int] | list[Plain] | Other)).encode((1,), {})
    with pytest.raises(BadArgument, match=r'^task: argument "value" does not match its type: Plain has no JSON form'):
        Signature("task", _takes(Plain)).encode((5,), {})


def test_what_is_not_a_function_is_no_task() -> None:
    def generator() -> Any:
        yield 1

    with pytest.raises(BadTask, match=r"^task: a task cannot be a generator"):
        Signature("task", generator)
    with pytest.raises(BadTask, match=r"^task: a task is a function, not type"):
        Signature("task", Plain)


def test_a_result_loses_the_outcomes_of_its_type() -> None:
    def several() -> int | Retry: ...  # type: ignore[empty-body]

    def nothing() -> Outcome | None: ...

    def quoted() -> "None": ...

    def unknown(): ...  # type: ignore[no-untyped-def]

    signature = Signature("task", several)
    assert signature.decode_result(b"5") == 5
    with pytest.raises(BadResult, match=r"^task: the result cannot be decoded: Expected `int`, got `str`"):
        signature.decode_result(b'"5"')
    with pytest.raises(BadResult, match=r"^task: the result cannot be encoded: Plain has no JSON form"):
        signature.encode_result(Plain())
    assert not signature.returns_nothing
    assert Signature("task", nothing).returns_nothing
    assert Signature("task", quoted).returns_nothing
    assert not Signature("task", unknown).returns_nothing
    assert Signature("task", unknown).decode_result(b"[1]") == [1]


def test_arguments_are_found_by_name_with_defaults() -> None:
    signature = Signature("welcome", _welcome)
    assert signature.arguments([msgspec.Raw(b'{"street":"a"}')], {}) == {"user": Address("a"), "lang": "en"}


def test_equal_calls_have_equal_keys() -> None:
    signature = Signature("welcome", _welcome)
    assert signature.key((Address("a"),), {}) == signature.key((), {"user": Address("a"), "lang": "en"})
    assert signature.key((Address("a"),), {"lang": "de"}, ["lang"]) == b'["de"]'
    assert signature.key(({"b": 1, "a": 2},), {}) == signature.key(({"a": 2, "b": 1},), {})
    with pytest.raises(BadArgument, match=r"^welcome: the unique key cannot be encoded: Plain"):
        signature.key((Plain(),), {})
    with pytest.raises(BadTask, match=r'^welcome: unique names the argument "users"; did you mean "user"'):
        signature.check_names(["users"], "unique")

"""Arguments and results as JSON, with the types that a function's annotations name.

An argument is encoded at the push and decoded again with its type, so that a push fails if the worker could not read
it. Positional and keyword arguments may be pushed either way: what can be positional is, in the order of the
parameters. Hence equal calls have equal JSON, and workers in other languages receive positional arguments.
"""

import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.app.errors import BadArgument, BadResult, BadTask, suggestion
from crossdock.app.outcomes import OutcomeBase

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REASON_CHARS: Final = 500


class Encoded(NamedTuple):
    """The arguments of a job as JSON."""

    args: msgspec.Raw  #: an array
    kwargs: msgspec.Raw | None  #: an object; None: there are none


class Argument(NamedTuple):
    """An argument that was matched with a parameter."""

    parameter: str
    label: str  #: for errors: the parameter's name, `rest[0]`, or the name that `**kwargs` has for it
    value: Any


class Bound(NamedTuple):
    positional: list[Argument]
    keywords: list[Argument]


# Values.


def _to_json(value: object) -> Any:
    """What msgspec cannot encode by itself. pydantic is not imported: a model's own methods are called."""
    if _is_pydantic(type(value)):
        return msgspec.Raw(value.model_dump_json(by_alias=True, round_trip=True).encode())  # type: ignore[attr-defined]
    name = type(value).__name__
    raise TypeError(f"{name} has no JSON form; use a dataclass, a msgspec struct or a pydantic model, or push an ID")


def _from_json(wanted: type[Any], value: Any) -> Any:
    if not _is_pydantic(wanted):
        raise TypeError(f"{wanted.__name__} has no JSON form; use a dataclass, a msgspec struct or a pydantic model")
    try:
        return wanted.model_validate_json(msgspec.json.encode(value))  # as JSON, because strict models accept more then
    except ValueError as error:
        raise ValueError(_pydantic_reason(error)) from None


def _is_pydantic(kind: type[Any]) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _pydantic_reason(error: ValueError) -> str:
    """One line: where and what, for each error, without links to pydantic's site."""
    details: Callable[[], list[Any]] | None = getattr(error, "errors", None)
    if details is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in details())


_encoder: Final = msgspec.json.Encoder(enc_hook=_to_json)
_sorting_encoder: Final = msgspec.json.Encoder(enc_hook=_to_json, order="deterministic")


def encode(value: object) -> bytes:
    """JSON of a value. Raises an exception of any type, also of the value's own methods."""
    text = _encoder.encode(value)
    if b"null" in text and not _is_finite(value):  # msgspec writes nan and infinity as null
        raise ValueError("it contains nan or infinity, which JSON does not have")
    return text


def _is_finite(value: object) -> bool:
    left: list[Any] = [msgspec.to_builtins(value, enc_hook=_nothing)]
    while left:
        each = left.pop()
        if isinstance(each, float):
            if not math.isfinite(each):
                return False
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            left += each
    return True


def _nothing(value: object) -> None:
    """Models check their own numbers."""


def reason(error: BaseException) -> str:
    """The text of an error, in one line of limited length. Its own `__str__` may fail."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - any class may raise anything here
        text = ""
    text = " ".join(text.encode("utf-8", "backslashreplace").decode().split()) or type(error).__name__
    return text if len(text) <= _REASON_CHARS else f"{text[:_REASON_CHARS]}…"


class _Reader:
    """Decodes JSON to one annotated type."""

    def __init__(self, wanted: Any) -> None:
        """Raises TypeError for a type that cannot be decoded."""
        self.wanted = wanted
        self.decode: Callable[[bytes], Any]
        try:
            self.decode = msgspec.json.Decoder(wanted, dec_hook=_from_json).decode
        except TypeError:
            pydantic = sys.modules.get("pydantic")
            if pydantic is None:
                raise
            # A union of models: pydantic chooses the member.
            adapter = pydantic.TypeAdapter(wanted)

            def decode(text: bytes) -> Any:
                try:
                    return adapter.validate_json(text)
                except ValueError as error:
                    raise ValueError(_pydantic_reason(error)) from None

            self.decode = decode


# Functions.


class Signature:
    """The parameters of a task's function. Annotations are resolved at the first use, when the module is complete."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        """Raises BadTask for a function that cannot be a task."""
        self._task = task
        self._function = function
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            raise BadTask(
                f"{task}: a task is a function, not {type(function).__name__}; write a function that calls it"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise BadTask(f"{task}: a task cannot be a generator, because a plain call of it executes nothing")
        parameters = inspect.signature(function).parameters
        #: Names of parameters that may be positional, and those of them that may also be named.
        self.positional: Final = [name for name, each in parameters.items() if each.kind in _POSITIONAL]
        self._named_or_not: Final = {
            name for name, each in parameters.items() if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        }
        self._only_named: Final = {
            name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY
        }
        self._rest = _name_of(parameters, inspect.Parameter.VAR_POSITIONAL)
        self._any_named = _name_of(parameters, inspect.Parameter.VAR_KEYWORD)
        self._required: Final = [
            name
            for name, each in parameters.items()
            if each.default is inspect.Parameter.empty and name not in (self._rest, self._any_named)
        ]
        self.defaults: Final[dict[str, Any]] = {
            name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty
        }
        self._readers: dict[str, _Reader] = {}
        self._annotations: dict[str, Any] | None = None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """Match arguments with parameters, as a call does. Raises BadArgument."""
        names, left = self.positional, dict(kwargs)
        if len(args) > len(names) and self._rest is None:
            raise self._wrong(f"{len(args)} positional arguments were given, at most {len(names)} are taken")
        positional = [Argument(name, name, value) for name, value in zip(names, args, strict=False)]
        if self._rest is not None:
            more = enumerate(args[len(names) :])
            positional += (Argument(self._rest, f"{self._rest}[{at}]", value) for at, value in more)
        for name in names[: len(args)]:
            if name in left and name in self._named_or_not:
                raise self._wrong(f'argument "{name}" was given twice')
        for name in names[len(args) :]:
            if name not in left or name not in self._named_or_not:
                break
            positional.append(Argument(name, name, left.pop(name)))
        keywords = [Argument(self._parameter(name), name, value) for name, value in left.items()]
        given = {each.parameter for each in (*positional, *keywords)}
        for name in self._required:
            if name not in given:
                raise self._wrong(f'argument "{name}" is missing')
        return Bound(positional, keywords)

    def _parameter(self, name: str) -> str:
        """The parameter that takes a keyword argument. Raises BadArgument."""
        if name in self._named_or_not or name in self._only_named:
            return name
        if self._any_named is None:
            raise self._unexpected(name)
        return self._any_named

    def _unexpected(self, name: str) -> BadArgument:
        takes = self._named_or_not | self._only_named
        return self._wrong(
            f'argument "{name[:100]}" is not taken; {suggestion(name, takes) if takes else "it takes no named ones"}'
        )

    def _wrong(self, why: str) -> BadArgument:
        return BadArgument(f"{self._task}: {why}")

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Encoded:
        """Raises BadArgument, which names the argument."""
        bound = self.bind(args, kwargs)
        texts = [self._encoded(each) for each in bound.positional]
        named = {each.label: msgspec.Raw(self._encoded(each)) for each in bound.keywords}
        return Encoded(
            msgspec.Raw(b"[%b]" % b",".join(texts)), msgspec.Raw(msgspec.json.encode(named)) if named else None
        )

    def _encoded(self, argument: Argument) -> bytes:
        reader = self._reader(argument.parameter)
        try:
            text = encode(argument.value)
        except Exception as error:
            raise self._wrong(f'argument "{argument.label}" cannot be encoded: {reason(error)}') from error
        if reader.wanted is not Any:
            try:
                reader.decode(text)
            except Exception as error:
                raise self._wrong(f'argument "{argument.label}" does not match its type: {reason(error)}') from error
        return text

    def decode(
        self, args: Sequence[msgspec.Raw], kwargs: Mapping[str, Any], *, raw: Callable[[bytes], bytes] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Arguments to call the function with. Raises BadArgument, which names the argument.

        `raw` reads arguments of type `bytes`, which are base64 otherwise.
        """
        bound = self.bind(args, kwargs)
        return (
            [self._decoded(each, raw) for each in bound.positional],
            {each.label: self._decoded(each, raw) for each in bound.keywords},
        )

    def _decoded(self, argument: Argument, raw: Callable[[bytes], bytes] | None = None) -> Any:
        reader, value = self._reader(argument.parameter), argument.value
        try:
            text = bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)
            return raw(text) if raw is not None and reader.wanted is bytes else reader.decode(text)
        except Exception as error:
            raise self._wrong(f'argument "{argument.label}" cannot be decoded: {reason(error)}') from error

    def arguments(self, args: Sequence[msgspec.Raw], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments by name, decoded, with the defaults of those that are missing. Raises BadArgument."""
        bound = self.bind(args, kwargs)
        return self.defaults | {each.label: self._decoded(each) for each in bound.positional + bound.keywords}

    def key(self, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> bytes:
        """Canonical JSON of the values of some arguments, or of all without `names`. Defaults count as given.

        Raises BadArgument.
        """
        bound = self.bind(args, kwargs)
        values = self.defaults | {each.label: each.value for each in bound.positional + bound.keywords}
        chosen = [values[name] for name in names] if names else sorted(values.items())
        try:
            return _sorting_encoder.encode(chosen)
        except Exception as error:
            raise self._wrong(f"the unique key cannot be encoded: {reason(error)}") from error

    def check_names(self, names: Sequence[str], what: str) -> None:
        """Raises BadTask if a name is not that of a parameter."""
        known = [*self.positional, *self._only_named]
        for name in names:
            if name not in known:
                raise BadTask(f'{self._task}: {what} names the argument "{name}"; {suggestion(name, known)}')

    def _reader(self, parameter: str) -> _Reader:
        reader = self._readers.get(parameter)
        if reader is None:
            reader = self._readers[parameter] = self._new_reader(parameter, f'argument "{parameter}"')
        return reader

    def _new_reader(self, name: str, what: str) -> _Reader:
        """Raises BadTask."""
        wanted = self._types().get(name, Any)
        try:
            return _Reader(without_outcomes(wanted) if name == "return" else wanted)
        except Exception as error:
            raise BadTask(f"{self._task}: the type of {what} cannot be read from JSON: {reason(error)}") from error

    def _types(self) -> dict[str, Any]:
        if self._annotations is None:
            try:
                self._annotations = typing.get_type_hints(self._function, include_extras=True)
            except Exception as error:
                raise BadTask(
                    f"{self._task}: an annotation cannot be resolved: {reason(error)}; "
                    'import the type where the task is defined, and not under "if TYPE_CHECKING"'
                ) from error
        return self._annotations

    @property
    def returns_nothing(self) -> bool:
        """Whether the function is annotated to return None, or nothing but outcomes."""
        # The text is enough to know, and the annotation of another parameter may not be complete yet.
        try:
            found = inspect.unwrap(self._function).__annotations__.get("return", Any)
        except NameError:  # Python 3.14 evaluates annotations here
            return False
        if isinstance(found, str):
            return found == "None"
        return without_outcomes(found) in (None, types.NoneType)

    def encode_result(self, value: Any) -> bytes:
        """Raises BadResult, which names the task."""
        try:
            return encode(value)
        except Exception as error:
            raise BadResult(f"{self._task}: the result cannot be encoded: {reason(error)}") from error

    def decode_result(self, text: bytes) -> Any:
        """Raises BadResult, which names the task."""
        reader = self._readers.get("return")
        if reader is None:
            reader = self._readers["return"] = self._new_reader("return", "the result")
        try:
            return reader.decode(text)
        except Exception as error:
            raise BadResult(f"{self._task}: the result cannot be decoded: {reason(error)}") from error


def _name_of(parameters: Mapping[str, inspect.Parameter], kind: Any) -> str | None:
    return next((name for name, each in parameters.items() if each.kind is kind), None)


def without_outcomes(wanted: Any) -> Any:
    """A return type without the outcomes: `str | Retry` is `str`."""
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        left = [each for each in typing.get_args(wanted) if not _is_outcome(each)]
        return typing.Union[tuple(left)] if left else None  # noqa: UP007 - the members are not known before
    return None if _is_outcome(wanted) else wanted


def _is_outcome(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, OutcomeBase)

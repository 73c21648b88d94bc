"""Calls of tasks, as a test expects them and as they were pushed: comparing the two and showing both."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.testing.pushed import PushedJob

_SHOWN_VALUE: Final = 80  #: characters
_SHOWN_JOBS: Final = 10

#: A parameter's name, or the position of an argument without one.
Key = str | int


class Parameters(NamedTuple):
    """The parameters of a task. A kind that is only known by name has none."""

    kind: str
    names: tuple[str, ...] = ()  #: parameters that may be passed by position
    keywords: tuple[str, ...] = ()  #: keyword-only ones
    defaults: Mapping[str, Any] = {}
    any_name: bool = True  #: it takes `**kwargs`, or nothing is known about it
    any_number: bool = True  #: it takes `*args`, or nothing is known about it

    @classmethod
    def of(cls, kind: str, function: Callable[..., Any]) -> "Parameters":
        parameters = inspect.signature(function).parameters.values()
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return cls(
            kind=kind,
            names=tuple(each.name for each in parameters if each.kind in by_position),
            keywords=tuple(each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY),
            defaults={each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty},
            any_name=any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters),
            any_number=any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters),
        )

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[Key, Any]:
        """The arguments by name, where they have one."""
        known: dict[Key, Any] = dict(zip(self.names, args, strict=False))
        known |= {at: args[at] for at in range(len(self.names), len(args))}
        return known | dict(kwargs)

    def expected(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[Key, Any]:
        """The arguments that a test expects. Raises TypeError for those that the task does not have."""
        if len(args) > len(self.names) and not self.any_number:
            raise TypeError(
                f"{self.kind} takes {len(self.names)} positional arguments, and the test expects {len(args)}"
            )
        known = (*self.names, *self.keywords)
        for name in kwargs:
            if name not in known and not self.any_name:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise TypeError(f"{self.kind} has no parameter {name!r}{hint} It takes: {', '.join(known) or 'none'}")
        return self.bind(args, kwargs)


class Expectation:
    """A call that a test expects. Arguments that it does not name may have any value."""

    def __init__(
        self,
        parameters: Parameters,
        kinds: Sequence[str],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        encode: Callable[[Any], bytes],
    ) -> None:
        """`kinds`: of jobs that run the task. `encode` makes the JSON of an argument, as a push does."""
        self._parameters = parameters
        self._kinds = kinds
        self._arguments = parameters.expected(args, kwargs)
        self._encode = encode

    def matches(self, job: PushedJob) -> bool:
        return job.kind in self._kinds and not self.differences(job)

    def differences(self, job: PushedJob) -> list[str]:
        """How a job of the same task differs."""
        got = self._parameters.bind(job.args, job.kwargs)
        found = []
        for key, wanted in self._arguments.items():
            if key in got:
                if not self._equal(wanted, got[key]):
                    found.append(f"{_shown_key(key)} is {_shown(got[key])}, not {_shown(wanted)}")
            elif key in self._parameters.defaults:
                default = self._parameters.defaults[str(key)]
                if not self._equal(wanted, default):
                    found.append(f"{_shown_key(key)} is {_shown(default)} by default, not {_shown(wanted)}")
            else:
                found.append(f"it has no {_shown_key(key)}")
        return found

    def _equal(self, wanted: Any, got: Any) -> bool:
        """Objects such as mock.ANY compare themselves. All others are compared as JSON."""
        if bool(wanted == got):
            return True
        try:
            return bool(msgspec.json.decode(self._encode(wanted)) == got)
        except Exception:  # noqa: BLE001 a value that cannot be encoded is not equal to one that was pushed
            return False

    def __str__(self) -> str:
        return _call(self._parameters.kind, self._arguments)

    def not_pushed(self, jobs: Sequence[PushedJob], parameters_of: Callable[[str], Parameters]) -> str:
        """The text of the error. `parameters_of` finds those of other kinds."""
        if not jobs:
            return f"{self} was not pushed; no job was pushed"
        why = {job.number: self.differences(job) for job in jobs if job.kind in self._kinds}
        nearest = sorted(jobs, key=lambda job: (job.number not in why, len(why.get(job.number, ()))))
        lines = [f"{self} was not pushed; these jobs were:"]
        for job in nearest[:_SHOWN_JOBS]:
            shown = show(job, self._parameters if job.number in why else parameters_of(job.kind))
            lines.append(f"  {shown}" + (f"  ({'; '.join(why[job.number])})" if job.number in why else ""))
        if len(jobs) > _SHOWN_JOBS:
            lines.append(f"  … and {len(jobs) - _SHOWN_JOBS} more")
        return "\n".join(lines)

    def unwanted(self, jobs: Sequence[PushedJob]) -> str:
        """The text of the error if these jobs should not have been pushed."""
        lines = [f"{self} should not be pushed; these jobs were:"]
        lines += [f"  {show(job, self._parameters)}" for job in jobs[:_SHOWN_JOBS]]
        if len(jobs) > _SHOWN_JOBS:
            lines.append(f"  … and {len(jobs) - _SHOWN_JOBS} more")
        return "\n".join(lines)


def show(job: PushedJob, parameters: Parameters) -> str:
    """A pushed job in one line, as a call."""
    where = "" if job.queue == "default" else f" on queue {job.queue}"
    when = "" if job.at is None else f" at {job.at.isoformat(sep=' ', timespec='seconds')}"
    return _call(job.kind, parameters.bind(job.args, job.kwargs)) + where + when


def _call(kind: str, arguments: Mapping[Key, Any]) -> str:
    shown = [_shown(value) if isinstance(key, int) else f"{key}={_shown(value)}" for key, value in arguments.items()]
    return f"{kind}({', '.join(shown)})"


def _shown_key(key: Key) -> str:
    return key if isinstance(key, str) else f"argument {key + 1}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"

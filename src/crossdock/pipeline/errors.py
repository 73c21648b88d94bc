"""Errors of the pipeline, and short texts for Spark's errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from crossdock.model.errors import CrossdockError

#: The last matching line of a Java or Python trace is the root cause.
_CAUSE: Final = re.compile(
    r"^(?:Caused by|Exception in thread \"[^\"]*\"|)(?::? )?(?:\w+\.)+([A-Z]\w*: .+)$", re.MULTILINE
)

#: Packages whose exceptions contain pages of traces.
_SPARKS: Final = ("pyspark", "py4j", "grpc")

#: Why this process gave up its Connect server. Calls that were waiting then fail with any error.
_given_up: list[str] = []


class PipelineError(CrossdockError):
    """The pipeline cannot continue; the text says why."""


class NoJava(PipelineError):
    """There is no suitable Java."""


class TablesInUse(PipelineError):
    """Another process writes the same tables."""


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Turn Spark's exceptions, which contain pages of traces, into a PipelineError of one sentence."""
    try:
        yield
    except Exception as error:
        if _given_up and not isinstance(error, PipelineError):
            raise PipelineError(_given_up[-1]) from error
        if type(error).__module__.partition(".")[0] not in _SPARKS:
            raise
        noted = next(filter(None, getattr(error, "__notes__", ())), "")
        raise PipelineError(f"{what}: {noted or cause(str(error))}") from error


def give_up(why: str) -> None:
    """The server is lost: `in_words` reports `why` in place of the errors that follow from it."""
    _given_up.append(why)


def hopeful() -> None:
    """A new session starts: forget a lost server."""
    _given_up.clear()


def cause(text: str) -> str:
    """The line of Spark's message that names the cause."""
    causes = [each for each in _CAUSE.findall(text) if not each.endswith("Traceback (most recent call last):")]
    return causes[-1] if causes else next(filter(None, map(str.strip, text.splitlines())), "no reason given")

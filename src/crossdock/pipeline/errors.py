"""What can go wrong before or beside Spark's own work, each with its cure."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from crossdock.model.errors import CrossdockError

#: The last such line of a trace is the cause of all before it, be it Java's or that of a Python on an executor.
_CAUSE: Final = re.compile(r"^(?:Caused by|)(?:: )?(?:\w+\.)+([A-Z]\w*: .+)$", re.MULTILINE)


class PipelineError(CrossdockError):
    """The pipeline cannot go on, and says why."""


class NoJava(PipelineError):
    """Spark has nothing to run on."""


class TablesInUse(PipelineError):
    """Another process writes the same tables."""


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Spark's own failures as one sentence, since its words are pages of traces. Raises PipelineError for them."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise PipelineError(f"{what}: {cause(str(error))}") from error


def cause(said: str) -> str:
    """Of what Spark says, the line that tells why."""
    causes = [each for each in _CAUSE.findall(said) if not each.endswith("Traceback (most recent call last):")]
    return causes[-1] if causes else next(filter(None, map(str.strip, said.splitlines())), "it does not say why")

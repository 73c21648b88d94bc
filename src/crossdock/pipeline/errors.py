"""What can go wrong before or beside Spark's own work, each with its cure."""

from crossdock.model.errors import CrossdockError


class PipelineError(CrossdockError):
    """The pipeline cannot go on, and says why."""


class NoJava(PipelineError):
    """Spark has nothing to run on."""


class TablesInUse(PipelineError):
    """Another process writes the same tables."""

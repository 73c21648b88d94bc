"""Errors of the test helpers. Failed assertions raise AssertionError, as in any test."""

from crossdock.model.errors import CrossdockError


class TestingError(CrossdockError):
    """The test helpers were used in a way that cannot work."""

    __test__ = False  # pytest would collect it as a class of tests


class WouldWait(TestingError):
    """A request waits for something that does not happen by itself in a test: no worker runs, and the clock stands."""


class EndlessChain(TestingError):
    """The jobs that a test runs push more and more jobs."""

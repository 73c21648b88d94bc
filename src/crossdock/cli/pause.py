"""`crossdock pause`: nothing is leased from these queues any more."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Let no more jobs out of queues.

They still go in, and wait for crossdock resume. A pause holds for every door. What is leased is not touched. A pause
outlasts a restart.
"""

_EXAMPLES = """\b
Examples:
  crossdock pause mail
  crossdock pause mail reports
  crossdock pause --all
"""

pause = naming(Verb("pause", "paused", "queue", _ABOUT, _EXAMPLES))

"""`crossdock resume`: the end of a pause."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """End the pause of queues.

Workers that wait get their jobs at once.
"""

_EXAMPLES = """\b
Examples:
  crossdock resume mail
  crossdock resume --all
"""

resume = naming(Verb("resume", "resumed", "queue", _ABOUT, _EXAMPLES))

"""`crossdock quiet`: workers finish what they have and get nothing new."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Give workers no more jobs.

They finish those they have, and stay connected. A worker hears of it in the answer to its next BEAT, within seconds.
There is no way back but a restart of the worker.
"""

_EXAMPLES = """\b
Examples:
  crossdock quiet 4qpc2443vpvai
  crossdock quiet --all
"""

quiet = naming(Verb("quiet", "quieted", "worker", _ABOUT, _EXAMPLES))

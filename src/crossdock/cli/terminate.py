"""`crossdock terminate`: workers are told to end."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Tell workers to end.

They finish or give up what they have, and leave. A worker hears of it in the answer to its next BEAT, within seconds,
and does it by itself; most wait up to 30 s for their jobs. A job that was not finished comes again when its lease is
over, or as soon as the worker fails it.

Resqu's workers hear of nothing, and --all does not mean them; one that is named is taken for gone, as if its host had
said so, and the job it has goes back to its queue.
"""

_EXAMPLES = """\b
Examples:
  crossdock terminate 4qpc2443vpvai
  crossdock terminate --all
  crossdock terminate node1~main~s~4711
"""

terminate = naming(Verb("terminate", "told to end:", "worker", _ABOUT, _EXAMPLES))

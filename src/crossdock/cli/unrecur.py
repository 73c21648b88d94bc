"""`crossdock unrecur`: these jobs come no more."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Remove recurring jobs.

Jobs that they have made stay. Those of the settings file (crossdock cron) are removed there.
"""

_EXAMPLES = """\b
Examples:
  crossdock unrecur sweep
  crossdock unrecur sweep report --json
"""

_VERB = Verb("unrecur", "removed", "recurring job", _ABOUT, _EXAMPLES, "ids", "recurring", has_all=False)

unrecur = naming(_VERB)

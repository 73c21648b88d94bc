"""`crossdock untrack`: nobody follows these jobs any more."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Follow jobs no more, by ID.

An ID is a number, or a jid: of a job that is gone the jid.
"""

_EXAMPLES = """\b
Examples:
  crossdock untrack 4711
  crossdock untrack --all
"""

untrack = naming(Verb("untrack", "untracked", "job", _ABOUT, _EXAMPLES, member="ids", listed_by="tracked"))

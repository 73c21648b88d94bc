"""`crossdock untag`: a job loses tags."""

from crossdock.cli.tagging import Verb, tagging

_ABOUT = """Take tags off a job, by ID, and print all that it has left.

An ID is a number or a jid, of a job of whatever door. A tag that it does not have changes nothing.
"""

_EXAMPLES = """\b
Examples:
  crossdock untag 4711 urgent
  crossdock untag 4711 urgent customer-42 --json
"""

untag = tagging(Verb("untag", _ABOUT, _EXAMPLES))

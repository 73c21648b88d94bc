"""`crossdock tag`: words to find a job by."""

from crossdock.cli.tagging import Verb, tagging

_ABOUT = """Give a job tags, by ID, and print all that it has.

An ID is a number or a jid, of a job of whatever door. crossdock jobs --tag finds it again.
"""

_EXAMPLES = """\b
Examples:
  crossdock tag 4711 urgent
  crossdock tag 4711 urgent customer-42 --json
"""

tag = tagging(Verb("tag", _ABOUT, _EXAMPLES))

"""Addresses of pages, and words of the filter language in them. Every name is hostile: it may hold any character."""

import re
from typing import Final
from urllib.parse import quote, urlencode

from crossdock.protocols.admin.filter_language import BadFilter, Filter, Term, Value, parse

#: Names that browsers and servers leave alone in a path. Others go into the query.
_IN_PATH: Final = re.compile(r"(?!\.\.?$)[\w.:@+~-]{1,200}", re.ASCII)

_SINGULAR: Final = {"queues": "queue", "batches": "batch"}


def address(page: str, name: str) -> str:
    """`/queues/mail`, or `/queue?name=a%2Fb` for a name that does not fit in a path."""
    if _IN_PATH.fullmatch(name):
        return f"/{page}/{name}"
    return f"/{_SINGULAR[page]}?{urlencode({'name': name})}"


def word(term: str, value: str) -> str:
    """One word of the filter language: `queue:mail`, `error:"timed out"`."""
    return Term(term, (Value(value),)).render()


def jobs(*words: str, **terms: str | None) -> str:
    """The address of the list of jobs with this filter."""
    text = " ".join([*words, *(word(term, value) for term, value in terms.items() if value is not None)])
    return f"/jobs?{urlencode({'filter': text}, quote_via=quote)}" if text else "/jobs"


def with_query(path: str, **values: str | None) -> str:
    query = urlencode({name: value for name, value in values.items() if value}, quote_via=quote)
    return f"{path}?{query}" if query else path


def with_state(text: str, state: str) -> str:
    """The filter with this state in place of its own. An empty state: any. A filter that is not valid is dropped."""
    rest = tuple(term for term in _terms(text) if term.field != "state")
    own = (Term("state", (Value(state),)),) if state else ()
    return Filter(own + rest).render()


def states_in(text: str) -> list[str]:
    """The states that the filter names."""
    return [value.text for term in _terms(text) if term.field == "state" and not term.negated for value in term.values]


def _terms(text: str) -> tuple[Term, ...]:
    try:
        return parse(text).terms
    except BadFilter:
        return ()

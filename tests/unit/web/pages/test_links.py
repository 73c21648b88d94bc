"""Addresses and filters with names of any kind."""

from urllib.parse import parse_qs, urlsplit

import pytest

from crossdock.protocols.admin.filter_language import parse
from crossdock.web.pages import links

NAMES = ["mail", "a.b-c_d", "..", "a/b", 'say "hi"', "a\\b", "x,y*", "-minus", "ünïcode", "a b", "?q=1#f", "%2F"]


@pytest.mark.parametrize("name", NAMES)
def test_an_address_leads_back_to_its_name(name: str) -> None:
    where = urlsplit(links.address("queues", name))
    found = parse_qs(where.query)["name"][0] if where.path == "/queue" else where.path.removeprefix("/queues/")
    assert found == name
    assert where.path.count("/") <= 2 and ".." not in where.path.split("/")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_filter_is_that_name(name: str) -> None:
    text = parse_qs(urlsplit(links.jobs(queue=name)).query)["filter"][0]
    (term,) = parse(text).terms
    assert [(value.text, value.prefix) for value in term.values] == [(name, False)]


def test_a_state_replaces_the_states_of_a_filter() -> None:
    text = 'state:dead,failed queue:mail error:"timed out"'
    assert links.states_in(text) == ["dead", "failed"]
    assert links.with_state(text, "ready") == 'state:ready queue:mail error:"timed out"'
    assert links.with_state(text, "") == 'queue:mail error:"timed out"'
    assert links.with_state("bad:word", "ready") == "state:ready"

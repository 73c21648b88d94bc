"""Groups of failures for the operator: by the type of the error, or by the first words of its message."""

import pytest

from crossdock.lake.redaction import Errors, Payloads
from crossdock.model.commands.core import Claim, Fail
from crossdock.model.job import error_group
from tests.model.bench import Bench
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.lake_rows import rows_of


@pytest.mark.parametrize(
    ("group", "message", "listed"),
    [
        ("Timeout", "after 30 s", "Timeout"),
        ("Error", "after 30 s", "Error"),
        ("undefined", "connect ECONNREFUSED 127.0.0.1:6379", "connect ECONNREFUSED N.N.N.N:N"),
        ("undefined", "order 42: no address at all here", "order N: no address at"),
        ("unknown", "  two\n\twords  ", "two words"),
        ("null", "user 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "user N is gone"),
        ("", "at 0xDEADbeef of 9f86d081884c7d65 decade facade00", "at N of N decade"),
        ("undefined", "x" * 1_000, "x" * 80),
        ("undefined", "", "undefined"),
        ("undefined", "undefined", "undefined"),
        ("unknown", "unknown", "unknown"),
        ("", "", ""),
        ("undefined", "größe 7 paßt nicht", "größe N paßt nicht"),
    ],
)
def test_the_group(group: str, message: str, listed: str) -> None:
    assert error_group(group, message) == listed


def test_failures_without_a_type_are_found_by_their_words_and_shown_as_they_were_sent(
    all_protocols: AllProtocols,
) -> None:
    peer, worker = ControlPeer(all_protocols.dispatcher), all_protocols.faktory()
    for number in range(3):
        ident = f"untyped-{number}"
        worker.push("q", ["a"], ident=ident, retry=-1 if number < 2 else 1)
        assert worker.fetch("q") is not None
        worker.call(f'FAIL {{"jid":"{ident}","errtype":"undefined","message":"row {number} of 9 is bad"}}')
    assert [(row["failure"], row["jobs"]) for row in peer.ask("failures")["failures"]] == [("row N of N is", 2)]
    rows = peer.ask("jobs", failure="row N of N is")["jobs"]
    assert [row["error"] for row in rows] == ["row 0 of 9 is bad", "row 1 of 9 is bad"]
    assert peer.ask("retry", failure="row N of N is", states=["dead"], dry_run=True)["count"] == 2
    assert peer.ask("retry", failure="row N of N is", to="q")["done"] == 2
    assert peer.ask("failures")["failures"] == []
    assert '"errtype":"undefined"' in worker.call("FETCH q")


@pytest.mark.parametrize(("errors", "listed"), [("full", "row N is bad"), ("group", "undefined")])
def test_the_lake_has_the_same_groups_unless_it_must_not_quote_messages(errors: Errors, listed: str) -> None:
    bench = Bench()
    bench.push("a")
    bench.lease()
    bench.do(Fail("a", Claim("faktory", "w"), "undefined", "row 1 is bad"))
    found = rows_of(bench.events, Payloads(errors=errors))
    assert [row["error_group"] for row in found if row["event"] == "failed"] == [listed]

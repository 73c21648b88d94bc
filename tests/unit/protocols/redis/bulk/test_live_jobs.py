"""crossdock.jobs: pages of live jobs by cursor, with typed filters, in small steps."""

from typing import Any

import msgspec
import pytest

from crossdock.protocols.admin import live_jobs
from crossdock.protocols.redis.bulk.library import library
from crossdock.protocols.redis.protocol import RedisProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import flood
from tests.support.resp_requests import resp_request
from tests.support.resp_values import read


class Talk:
    def __init__(self) -> None:
        self.dispatcher = PlainDispatcher()
        self.peer = Peer(self.dispatcher, RedisProtocol(libraries=(library(live_jobs.page),)))

    def ask(self, *words: bytes) -> Any:
        self.peer.send(resp_request(b"FCALL", [b"crossdock.jobs", b"0", *words]))
        [reply] = read(self.peer.take())
        return reply

    def page(self, **request: Any) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.ask(msgspec.json.encode(request)))
        return found

    def pages(self, **request: Any) -> list[dict[str, Any]]:
        found = [self.page(**request)]
        while found[-1]["after"] is not None:
            found.append(self.page(**request, after=found[-1]["after"]))
        return found


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_pages_return_every_job_once(talk: Talk) -> None:
    for queue in ("a", "b", "c"):
        flood(talk.dispatcher, 150, queue)
    flood(talk.dispatcher, 50, "a", due=talk.dispatcher.now.wall + 60)
    rows = [row for page in talk.pages(limit=70) for row in page["jobs"]]
    assert sorted(row["number"] for row in rows) == list(range(1, 501))
    assert {row["state"] for row in rows} == {"ready", "scheduled"}
    chosen = [row for page in talk.pages(queue="a", states=["scheduled"]) for row in page["jobs"]]
    assert [(row["queue"], row["state"]) for row in chosen] == [("a", "scheduled")] * 50
    assert {"jid", "kind", "priority", "since", "due", "attempts", "tags", "payload"} <= set(chosen[0])


def test_a_call_that_finds_little_is_still_a_small_step(talk: Talk) -> None:
    flood(talk.dispatcher, 4 * live_jobs.EXAMINED_AT_MOST, "a")
    flood(talk.dispatcher, 1, "a", "rare")
    pages = talk.pages(queue="a", kind="rare")
    assert len(pages) == 5
    assert max(page["examined"] for page in pages) <= live_jobs.EXAMINED_AT_MOST
    assert [len(page["jobs"]) for page in pages] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "ERR crossdock.jobs takes no keys and 1 argument"),
        ((b"{}", b"{}"), "ERR crossdock.jobs takes no keys and 1 argument"),
        ((b"queue = mail",), "ERR not a request: "),
        ((b'{"queue":1}',), "ERR not a request: Expected `str | null`, got `int` - at `$.queue`"),
        ((b'{"where":"1=1"}',), "ERR not a request: Object contains unknown field `where`"),
        ((b'{"limit":100000}',), "ERR not a request: Expected `int` <= 200"),
        ((b'{"states":["lost"]}',), 'ERR state "lost" cannot be selected here; choose from '),
        ((b'{"after":"x"}',), "ERR after is not a cursor of this server"),
        ((b"\xff",), "ERR not a request: "),
    ],
)
def test_an_invalid_request_is_reported(talk: Talk, words: tuple[bytes, ...], why: str) -> None:
    kind, text = talk.ask(*words)
    assert kind == "error"
    assert text.decode().startswith(why)


def test_live_jobs_require_the_password() -> None:
    peer = Peer(PlainDispatcher(), RedisProtocol(libraries=(library(live_jobs.page),), password="secret"))
    peer.send(resp_request(b"FCALL", [b"crossdock.jobs", b"0", b"{}"]))
    assert peer.take().startswith(b"-NOAUTH ")

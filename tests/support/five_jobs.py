"""Example jobs: one in every state, made by client requests, or thousands, made directly in the engine."""

import json

from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Form, Spec
from tests.support.conversation import Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.states import RULES

LATER = "2027-01-01T00:00:00Z"
STATES = {
    "job-00001": "leased",
    "job-00002": "ready",
    "job-00003": "retrying",
    "job-00004": "scheduled",
    "job-00005": "dead",
}


def push(client: Conversation, jid: str, queue: str = "mail", kind: str = "send", **fields: object) -> None:
    body = {"jid": jid, "queue": queue, "jobtype": kind, "args": [1], **fields}
    assert client.ask(f"PUSH {json.dumps(body)}") == b"+OK\r\n"


def fetch(client: Conversation, jid: str, queue: str = "mail") -> None:
    assert f'"jid":"{jid}"'.encode() in client.ask(f"FETCH {queue}")


def fail(client: Conversation, jid: str) -> None:
    body = json.dumps({"jid": jid, "errtype": "Boom", "message": "it broke", "backtrace": ["a", "b"]})
    assert client.ask(f"FAIL {body}") == b"+OK\r\n"


def five_jobs(client: Conversation) -> None:
    """Push jobs 1 to 5 in the order of STATES. Their priorities determine the order in which they are fetched."""
    push(client, "job-00001", priority=7)
    push(client, "job-00002", priority=1)
    push(client, "job-00003", priority=8)
    push(client, "job-00004", at=LATER)
    push(client, "job-00005", priority=9, retry=-1)
    for jid in ("job-00005", "job-00003"):
        fetch(client, jid)
        fail(client, jid)
    fetch(client, "job-00001")


def flood(dispatcher: PlainDispatcher, jobs: int, queue: str = "mail", kind: str = "send", due: float = 0.0) -> None:
    """Push jobs directly into the engine, which is faster than PUSH. Their jids contain their numbers."""
    first = dispatcher.state.counters.number + 1
    specs = [Spec(f"job-{first + i:08d}", queue, kind, b"[]", Form.JSON, 0, RULES, due) for i in range(jobs)]
    dispatcher.do(Enqueue("faktory", specs))

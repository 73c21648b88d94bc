"""Traces: which jobs carry a context, and what is reported when their lease ends."""

import json

import pytest
from opentelemetry.trace import StatusCode

from crossdock.model.clock import Now
from crossdock.model.commands.admin import Remove
from crossdock.model.commands.core import Claim, Enqueue, Fail, GiveBack, Succeed
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Extra, Form, LeaseRef, Number, Spec
from crossdock.model.states import State
from crossdock.server import tracing
from crossdock.server.trace_exporter import Spans, traces_url
from crossdock.server.trace_messages import FinishedJob, TraceOptions
from crossdock.server.tracing import TraceContext, TraceKeeper, TraceRecorder, trace_context
from tests.support.states import RULES, Story

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
CLAIM = Claim("faktory", "w")


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}-00",  # not sampled
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        42,
        None,
    ],
)
def test_an_invalid_context_is_ignored(parent: object) -> None:
    assert trace_context(json.dumps({"traceparent": parent}).encode()) is None


@pytest.mark.parametrize(
    "custom", [b"", b"{}", b'["traceparent"]', b'{"traceparent":', b'"traceparent"', b"\xfftraceparent"]
)
def test_other_custom_fields_are_no_context(custom: bytes) -> None:
    assert trace_context(custom) is None


def test_a_context_is_read_beside_other_fields() -> None:
    assert trace_context(json.dumps({"a": [1], "traceparent": PARENT}).encode()) == TraceContext(TRACE, SPAN)
    assert trace_context(json.dumps({"traceparent": f"01-{TRACE}-{SPAN}-01-more"}).encode()) is not None


class Traced(Story):
    def __init__(self) -> None:
        super().__init__()
        self.reported: list[FinishedJob] = []
        self.recorder = TraceRecorder(self.state, self.reported.append)

    def push_traced(self, jid: str = "traced") -> None:
        custom = json.dumps({"traceparent": PARENT}).encode()
        self.do(Enqueue("faktory", [Spec(jid, "mail", "kind", b"[]", Form.JSON, 0, RULES, 0.0, Extra(custom))]))

    def observe(self) -> None:
        """As the group commit does, after each entry."""
        events = decode_entry(self.batches[-1]).events
        self.recorder.observe([events], [(self.batches[-1], len(events))])

    def lease_traced(self) -> LeaseRef:
        job = self.lease("mail")
        self.observe()
        return job.number, job.lease.token

    def pass_time(self, seconds: float) -> None:
        self.now = Now(self.now.wall + seconds, self.now.steady + seconds)


@pytest.fixture
def story() -> Traced:
    return Traced()


def test_a_traced_job_is_reported_with_its_times(story: Traced) -> None:
    story.push_traced()
    story.pass_time(1.5)
    leased_at = story.now.wall
    story.lease_traced()
    story.pass_time(2.5)
    story.do(Succeed("traced", CLAIM))
    story.observe()
    (job,) = story.reported
    assert (job.trace_id, job.parent_id, job.jid, job.queue, job.worker, job.attempt, job.error) == (
        *(TRACE, SPAN, "traced", "mail", "w", 1, ""),
    )
    assert [job.leased_at, job.wait_s, job.run_s] == pytest.approx([leased_at, 2.0, 3.0])


def test_each_attempt_is_reported_and_a_failure_names_its_type(story: Traced) -> None:
    story.push_traced()
    story.lease_traced()
    story.do(Fail("traced", CLAIM, "Timeout", "password=secret"))
    story.observe()
    (job,) = story.reported
    assert job.error == "Timeout"
    story.do(Succeed("traced", CLAIM))
    assert len(story.reported) == 1, "the lease has ended"


def test_a_job_without_a_context_is_not_reported(story: Traced) -> None:
    story.push("plain", queue="mail")
    story.lease_traced()
    story.do(Succeed("plain", CLAIM))
    story.observe()
    assert story.reported == []


def test_a_lease_that_never_reached_its_worker_is_not_reported(story: Traced) -> None:
    story.push_traced()
    story.do(GiveBack("faktory", [story.lease_traced()]))
    story.observe()
    assert story.reported == []
    assert story.recorder._contexts == {}


def test_a_removed_job_is_forgotten(story: Traced) -> None:
    story.push_traced()
    story.lease_traced()
    story.do(Remove("admin", "canceled", [Number(1)], frozenset({State.LEASED})))
    story.observe()
    assert story.recorder._contexts == {}


def test_jobs_leased_before_a_restart_are_reported(story: Traced) -> None:
    story.push_traced()
    story.lease_traced()
    story.recorder = TraceRecorder(story.state, story.reported.append)
    story.do(Succeed("traced", CLAIM))
    story.observe()
    assert [job.jid for job in story.reported] == ["traced"]


def test_the_contexts_of_leased_jobs_are_bounded(story: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "CONTEXTS", 2)
    for n in range(3):
        story.push_traced(f"traced-{n}")
        story.lease_traced()
    assert len(story.recorder._contexts) == 2
    for n in range(3):
        story.do(Succeed(f"traced-{n}", CLAIM))
        story.observe()
    assert [job.jid for job in story.reported] == ["traced-1", "traced-2"], "the oldest is forgotten"


JOB = FinishedJob(TRACE, SPAN, 1, "jid", "mail", "kind", "faktory", "w", 1, 1_000.0, 2.0, 3.0)


def test_jobs_are_dropped_and_counted_while_the_exporter_does_not_run() -> None:
    keeper = TraceKeeper("http://127.0.0.1:1", "test")
    keeper.report(JOB)
    assert (keeper.sent, keeper.dropped) == (0, 1)


def test_spans_cover_the_wait_and_the_run() -> None:
    wait, run = Spans(TraceOptions("http://127.0.0.1:1", "test", "1.0")).of(JOB)
    assert (wait.name, wait.start_time, wait.end_time) == ("wait", 998 * 10**9, 1_000 * 10**9)
    assert (run.name, run.start_time, run.end_time) == ("run", 1_000 * 10**9, 1_003 * 10**9)
    assert run.status.status_code is StatusCode.OK


@pytest.mark.parametrize("endpoint", ["http://host:4318", "http://host:4318/", "http://host:4318/v1/traces"])
def test_the_path_is_added_to_the_endpoint(endpoint: str) -> None:
    assert traces_url(endpoint) == "http://host:4318/v1/traces"

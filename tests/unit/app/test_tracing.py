import subprocess
import sys

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from crossdock import App
from crossdock.app.tracing import carried, continued

SPAN = SpanContext(0x1234, 0x5678, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
PARENT = f"00-{0x1234:032x}-{0x5678:016x}-01"


def test_a_push_carries_the_context_of_the_current_span() -> None:
    app = App()

    @app.task
    def add(x: int) -> int:
        return x

    with trace.use_span(NonRecordingSpan(SPAN)):
        assert add.job(1).new_job.custom == {"traceparent": PARENT}
        assert carried({"a": 1}) == {"a": 1, "traceparent": PARENT}
        assert carried({"traceparent": "own"}) == {"traceparent": "own"}
    assert add.job(1).new_job.custom is None


def test_a_task_runs_in_the_context_of_its_job() -> None:
    with continued({"traceparent": PARENT, "n": 1}):
        found = trace.get_current_span().get_span_context()
        assert (found.trace_id, found.span_id) == (SPAN.trace_id, SPAN.span_id)
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_wrong_context_is_ignored() -> None:
    for custom in ({}, {"traceparent": "nonsense"}, {"traceparent": 7}):
        with continued(custom):
            assert not trace.get_current_span().get_span_context().is_valid


def test_a_program_without_opentelemetry_does_not_load_it() -> None:
    program = (
        "import sys\nfrom crossdock import App\napp = App()\n@app.task\ndef f() -> None: ...\nf.job()\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

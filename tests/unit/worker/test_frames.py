"""Frames between the supervisor and its child processes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.client.jobs import FetchedJob
from crossdock.worker.frames import (
    Assignment,
    BadFrame,
    Failed,
    FrameReader,
    Interrupt,
    Loaded,
    NotLoaded,
    Outcome,
    Progress,
    Report,
    Returned,
    Run,
    Snoozed,
    Stop,
    Succeeded,
    decode_message,
    decode_order,
    frame,
)


def test_orders_survive_a_frame() -> None:
    args = msgspec.Raw(b'[1, "two", {"deep": [3]}]')
    sent = FetchedJob(jid="job-0001", kind="mail", args=args, custom={"kwargs": {"a": 1}})
    [body] = FrameReader().feed(frame(Run([Assignment(7, sent)])))
    order = decode_order(body)
    assert isinstance(order, Run)
    [assignment] = order.jobs
    assert (assignment.row, assignment.job.kind, assignment.job.custom) == (7, "mail", {"kwargs": {"a": 1}})
    assert msgspec.json.decode(assignment.job.args) == [1, "two", {"deep": [3]}]
    for each in (Interrupt(3, "timeout"), Stop()):
        [body] = FrameReader().feed(frame(each))
        assert decode_order(body) == each


def test_messages_survive_a_frame() -> None:
    loaded = Loaded(url="crossdock://h", app="shop", tasks=["a"], queues=["default"], timeouts={"a": 2.5})
    for message in (loaded, NotLoaded("why", "trace", ["file"])):
        [body] = FrameReader().feed(frame(message))
        assert decode_message(body) == message
    outcomes: list[Outcome] = [
        Failed(1, 0.5, "ValueError", "text", ["line"], final=True, delay_s=3.0),
        Snoozed(2, 0.1, 30.0, "why"),
        Returned(3),
        Progress(4, 50, "half"),
    ]
    [body] = FrameReader().feed(frame(Report([*outcomes, Succeeded(5, 0.2, msgspec.Raw(b'{"a": 1}'))])))
    report = decode_message(body)
    assert isinstance(report, Report)
    assert report.outcomes[:4] == outcomes
    last = report.outcomes[4]
    assert isinstance(last, Succeeded)
    assert bytes(last.result) == b'{"a": 1}'


@given(st.lists(st.integers(0, 50), max_size=8), st.data())
def test_frames_are_found_however_the_stream_is_cut(rows: list[int], data: st.DataObject) -> None:
    stream = b"".join(frame(Interrupt(row, "lost")) for row in rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, found = FrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += [decode_order(body) for body in reader.feed(stream[begin:end])]
    assert found == [Interrupt(row, "lost") for row in rows]


def test_a_stream_out_of_step_is_noticed() -> None:
    with pytest.raises(BadFrame, match="bytes"):
        list(FrameReader().feed(b"\xff\xff\xff\xffhello"))

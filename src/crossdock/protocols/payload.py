"""What a payload looks like through a door it did not come by (MODEL section 9)."""

import msgspec

from crossdock.model.job import Form, Job
from crossdock.protocols.json import compact


def as_bytes(job: Job) -> bytes:
    """For Workq: raw bytes as they are, JSON as compact text."""
    return compact(job.payload) if job.form is Form.JSON else job.payload


def as_value(job: Job) -> bytes:
    """For Masenko: JSON as it was pushed; bytes that are UTF-8 as a string, others as `{"base64": "…"}`."""
    if job.form is Form.JSON:
        return job.payload
    if job.form is Form.NONE:
        return b"null"
    try:
        return msgspec.json.encode(job.payload.decode())
    except UnicodeDecodeError:
        return msgspec.json.encode({"base64": job.payload})  # its way with bytes


def as_args(job: Job) -> bytes:
    """For Faktory: an array as it is, anything else as an array of one."""
    if job.form is Form.JSON and job.payload[:1] == b"[":
        return job.payload
    return b"[]" if job.form is Form.NONE else b"[%b]" % as_value(job)

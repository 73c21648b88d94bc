"""Jobs that were pushed through another protocol than Faktory's: their arguments, environment and include path.

A Resqu, qless or Masenko job has one JSON object with named arguments. A Workq job has bytes. The server shows each of
them as an array with one element. Nothing here imports, opens or evaluates what a job names.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from crossdock.client.jobs import FetchedJob

_NATIVE: Final = "faktory"
_WORKQ: Final = "workq"
_RESQU: Final = "resqu"

_elements: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text: Final = msgspec.json.Decoder(str)


def arguments_of(job: FetchedJob, *, unpack: bool) -> tuple[list[msgspec.Raw], Mapping[str, Any]]:
    """The positional arguments and the keyword arguments of a job, not decoded.

    With `unpack` the object of a foreign job becomes keyword arguments. Raises msgspec.DecodeError.
    """
    args = _elements.decode(job.args)
    kwargs = job.custom.get("kwargs")
    if isinstance(kwargs, dict):
        return args, kwargs
    if unpack and job.origin != _NATIVE and len(args) == 1 and bytes(args[0])[:1] == b"{":
        members = _object.decode(args[0])
        # The server shows bytes that are not UTF-8 as {"base64": "…"}.
        return (args, {}) if members.keys() == {"base64"} else ([], members)
    return args, {}


def is_raw(job: FetchedJob) -> bool:
    """Whether the payload may be bytes: a parameter of type `bytes` receives them as they were pushed."""
    return job.origin == _WORKQ


def raw_bytes(value: bytes) -> bytes:
    """The bytes that the server shows as a JSON text or as `{"base64": "…"}`. Raises ValueError for anything else."""
    try:
        if value[:1] == b'"':
            return _text.decode(value).encode()
        members = _object.decode(value)
        return base64.b64decode(_text.decode(members["base64"]), validate=True)
    except (msgspec.DecodeError, KeyError, binascii.Error):
        raise ValueError("expected a text, or an object with base64") from None


def _payload(job: FetchedJob) -> dict[str, Any]:
    """What a Resqu job has beside its arguments."""
    return job.resqu if isinstance(job.resqu, dict) else {}


def environment_of(job: FetchedJob) -> Mapping[str, Any]:
    """The `environment` of a Resqu job; empty for others."""
    found = _payload(job).get("environment")  # PHP writes an empty one as []
    return found if isinstance(found, dict) else {}


def include_path_of(job: FetchedJob) -> str:
    """The `includePath` of a Resqu job; empty for others."""
    found = _payload(job).get("includePath")
    return found if isinstance(found, str) else ""


def kinds_of(job: FetchedJob) -> list[str]:
    """The names under which a task is looked up, best first. PHP treats `\\A\\B` and `A\\B` as the same class."""
    names = [job.kind]
    if job.origin == _RESQU:
        named = _payload(job).get("name")
        if isinstance(named, str) and named:
            names.append(named)
        names += [each.removeprefix("\\") for each in names if each.startswith("\\")]
    return names

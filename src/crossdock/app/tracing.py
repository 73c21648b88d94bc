"""The trace context of OpenTelemetry: a pushed job carries it in `custom`, and its task runs in it.

Nothing happens unless the program has loaded OpenTelemetry.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

_LOADED_BY: Final = "opentelemetry.trace"


def carried(custom: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """`custom` with the current context, unless the caller has set one."""
    if _LOADED_BY not in sys.modules:
        return custom
    from opentelemetry import propagate

    found: dict[str, Any] = {}
    propagate.inject(found)
    return {**found, **(custom or {})} if found else custom


@contextmanager
def continued(custom: Mapping[str, Any]) -> Iterator[None]:
    """Run the block in the context that a job carries."""
    if _LOADED_BY not in sys.modules or "traceparent" not in custom:
        yield
        return
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract({name: text for name, text in custom.items() if isinstance(text, str)}))
    try:
        yield
    finally:
        context.detach(token)

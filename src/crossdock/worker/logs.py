"""The log of a worker: the lines of the server's log, with the ID and the kind of the job that a task runs."""

import logging
import sys
from typing import TextIO

from crossdock.app.context import JobFilter
from crossdock.logs import JsonFormatter, LogOptions, TextFormatter


class _JobFields(JobFilter):
    """Puts the job into the fields of the line. A field of the same name stays."""

    def filter(self, record: logging.LogRecord) -> bool:
        super().filter(record)
        jid, kind = getattr(record, "jid", ""), getattr(record, "kind", "")
        if jid:
            record.fields = {"jid": jid, "kind": kind} | getattr(record, "fields", {})
        return True


def configure(chosen: LogOptions, process: str = "") -> None:
    """Log to stderr, the lines of all libraries and of the user's modules."""
    handler: logging.StreamHandler[TextIO] = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(process) if chosen.format == "json" else TextFormatter(process))
    handler.addFilter(_JobFields())
    level = logging.getLevelNamesMapping()[chosen.level.upper()]
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # asyncio reports each of its selectors at debug.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))

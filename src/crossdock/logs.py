"""The log of every process: one line per event on stderr, as text or as JSON.

An event has a short stable name, a sentence for people, and fields. Values that clients supply cannot break a line or
change a terminal: control characters are escaped, and long values are cut.
"""

import json
import logging
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, TextIO

Format = Literal["text", "json"]

#: Longest value of a field, and longest sentence, in characters.
VALUE_CHARS: Final = 200
SENTENCE_CHARS: Final = 1_000
_TRACEBACK_CHARS: Final = 8_000
_WORD_BYTES: Final = 40

#: Events of one name that are logged in a second by `limited_event`.
EVENTS_A_SECOND: Final = 10

#: Control characters, line separators, characters that change the direction of text, and lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: A text value that needs no quotes.
_PLAIN: Final = re.compile(r"[^\s\"=\\]+")


class LogOptions(NamedTuple):
    """What `configure` was called with. The server passes it to its child processes."""

    level: str = "info"
    format: Format = "text"

    def __str__(self) -> str:
        return f"{self.level},{self.format}"

    @classmethod
    def parse(cls, text: str) -> "LogOptions":
        level, _, form = text.partition(",")
        return cls(level, "json" if form == "json" else "text")


class _Handler(logging.StreamHandler[TextIO]):
    def __init__(self, chosen: LogOptions, process: str) -> None:
        super().__init__(sys.stderr)
        self.chosen = chosen
        self.setFormatter(JsonFormatter(process) if chosen.format == "json" else TextFormatter(process))


def options() -> LogOptions:
    """The options in effect."""
    return next((each.chosen for each in logging.getLogger().handlers if isinstance(each, _Handler)), LogOptions())


def configure(chosen: LogOptions, process: str = "") -> None:
    """Log to stderr from now on. May be called again. `process` names a child process in each of its lines."""
    level = logging.getLevelNamesMapping()[chosen.level.upper()]
    # Libraries report each of their steps at info.
    others = logging.INFO if level == logging.DEBUG else max(level, logging.WARNING)
    logging.basicConfig(level=others, handlers=[_Handler(chosen, process)], force=True)
    logging.getLogger("crossdock").setLevel(level)
    if process:
        sys.excepthook = _log_crash


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log = logging.getLogger("crossdock")
    text = "the process failed and ends"
    log.critical("%s", text, exc_info=(kind, error, trace), extra={"event": "process-failed", "fields": {}})


def event(
    log: logging.Logger, level: int, name: str, text: str, *, error: BaseException | None = None, **fields: Any
) -> None:
    """Log one event. Fields that are None are left out. `error` adds its traceback."""
    if log.isEnabledFor(level):
        log.log(level, "%s", text, exc_info=error, extra={"event": name, "fields": fields})


def shown(word: bytes) -> str:
    """The beginning of an unexpected word that a client sent, for a sentence."""
    return _cut(escape(word[:_WORD_BYTES].decode("utf-8", "replace")), _WORD_BYTES)


# Events that clients can cause at any rate.


class RateLimit:
    """Logs at most `EVENTS_A_SECOND` events of each name in a second, and then how many more there were."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = -math.inf
        self._logged: Counter[str] = Counter()
        self._dropped: Counter[tuple[str, str, int]] = Counter()  #: by logger, event and level

    def event(self, log: logging.Logger, level: int, name: str, text: str, **fields: Any) -> None:
        if not log.isEnabledFor(level):
            return
        self.report_dropped()
        if self._logged[name] < EVENTS_A_SECOND:
            self._logged[name] += 1
            event(log, level, name, text, **fields)
        else:
            self._dropped[log.name, name, level] += 1

    def report_dropped(self) -> None:
        """Called by each event, and once a second, so that the last events are counted too."""
        now = self._clock()
        if now - self._began < 1.0:
            return
        self._began = now
        self._logged.clear()
        dropped, self._dropped = self._dropped, Counter()
        for (log, name, level), count in dropped.items():
            text = f"{count} more {name} {'event was' if count == 1 else 'events were'} not logged"
            event(logging.getLogger(log), level, name, text, count=count)


_limit = RateLimit()
limited_event = _limit.event
report_dropped = _limit.report_dropped


# Formats.


def escape(text: str) -> str:
    """Without characters that could end the line, hide a part of it, or control a terminal."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return _NAMED.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _value(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return _cut(_encodable(text), VALUE_CHARS)


def _encodable(text: str) -> str:
    """Without lone surrogates, which no UTF-8 text and no strict JSON reader allows."""
    return text.encode("utf-8", "backslashreplace").decode()


class _EventFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, process: str = "") -> None:
        super().__init__()
        self._process = process

    def members(self, record: logging.LogRecord) -> dict[str, Any]:
        """The fields of the event, after its name and process."""
        found: dict[str, Any] = {"event": getattr(record, "event", record.name)}
        if self._process:
            found["process"] = self._process
        given: dict[str, Any] = getattr(record, "fields", {})
        return found | {name: _value(value) for name, value in given.items() if value is not None and name not in found}

    def traceback(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[0] is None:
            return ""
        return self.formatException(record.exc_info)[-_TRACEBACK_CHARS:]


class TextFormatter(_EventFormatter):
    """`TIME LEVEL sentence event=NAME key=value`. A traceback follows in indented lines."""

    def format(self, record: logging.LogRecord) -> str:
        sentence = escape(_cut(record.getMessage(), SENTENCE_CHARS))
        fields = " ".join(f"{name}={_text(value)}" for name, value in self.members(record).items())
        trace = "".join(f"\n    {escape(line)}" for line in self.traceback(record).splitlines())
        return f"{self.formatTime(record)} {record.levelname} {sentence} {fields}{trace}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and not _UNSAFE.search(value):
        return value
    return '"' + escape(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


class JsonFormatter(_EventFormatter):
    """One JSON object per line: ts, level, event, msg and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        members = self.members(record)
        found = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "event": members.pop("event"),
            "msg": _cut(_encodable(record.getMessage()), SENTENCE_CHARS),
        }
        found |= {name: value for name, value in members.items() if name not in found}
        trace = self.traceback(record)
        if trace:
            found["traceback"] = _encodable(trace)
        return json.dumps(found, ensure_ascii=True).replace("\x7f", "\\u007f")

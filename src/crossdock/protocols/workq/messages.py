"""Replies and errors of the Workq door, with the exact text of each (page section 4). Each is one write (9.2)."""

from typing import Final

OK: Final = b"+OK\r\n"
ONE: Final = b"+OK 1\r\n"
NONE: Final = b"+OK 0\r\n"
NOT_FOUND: Final = b"-NOT-FOUND\r\n"
TIMEOUT: Final = b"-TIMEOUT\r\n"  #: a blank behind it would be refused by the Go client


def client_error(text: str) -> bytes:
    return b"-CLIENT-ERROR %b\r\n" % text.encode()


def server_error(text: str) -> bytes:
    return b"-SERVER-ERROR %b\r\n" % text.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b" ")


UNKNOWN_COMMAND: Final = client_error("Unknown command")
INVALID_ARGS: Final = client_error("Invalid command args")
INVALID_FLAGS: Final = client_error("Invalid command flags")
INVALID_PAYLOAD_SIZE: Final = client_error("Invalid payload size")
INVALID_RESULT_SIZE: Final = client_error("Invalid result size")
INVALID_ID: Final = client_error("Invalid ID")
INVALID_NAME: Final = client_error("Invalid Name")
INVALID_TTR: Final = client_error("Invalid TTR")
INVALID_TTL: Final = client_error("Invalid TTL")
INVALID_TIME: Final = client_error("Invalid Time")
INVALID_PRIORITY: Final = client_error("Invalid Priority")
INVALID_MAX_ATTEMPTS: Final = client_error("Invalid Max Attempts")
INVALID_MAX_FAILS: Final = client_error("Invalid Max Fails")
INVALID_WAIT: Final = client_error("Invalid wait timeout")
INVALID_OFFSET: Final = client_error("Invalid cursor offset")
INVALID_LIMIT: Final = client_error("Invalid limit")
DUPLICATE_JOB: Final = client_error("Duplicate job")
DUPLICATE_RESULT: Final = client_error("Duplicate result")


class Invalid(Exception):
    """A command that is refused; `reply` is what its client hears."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(reply)
        self.reply = reply


def result(ident: str, ok: bool, body: bytes) -> bytes:
    """How a job ended, told to `run` and `result`."""
    return ONE + b"%b %d %d\r\n%b\r\n" % (ident.encode(), ok, len(body), body)

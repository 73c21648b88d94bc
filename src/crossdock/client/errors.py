"""Errors of clients. The text of each says what happened and what to do next. None of them contains a password.

CrossdockError
└── ClientError
    ├── NoServer              no server answers at the address
    ├── Refused               the server returned an error; the text is the server's
    │   ├── WrongPassword
    │   ├── NotUnique         a job with the same unique key is already there
    │   ├── ServerFull        the server accepts no more jobs for now
    │   └── PushRefused       some jobs of a bulk push were refused
    ├── Broken                the connection was lost, or a reply was invalid
    ├── Closed                the client was closed
    ├── InvalidJob            the job cannot be sent
    │   └── PayloadTooLarge   it is longer than the server accepts
    ├── Unsupported           the server does not have the extension that the call needs
    ├── UnknownJob            the server does not know the job
    ├── JobFailed             the job whose result was asked for is dead
    ├── JobCancelled          the job whose result was asked for was cancelled
    └── ResultTimeout         the job did not end in time
"""

from crossdock.model.errors import CrossdockError


class ClientError(CrossdockError):
    """Base of all errors of clients."""


class NoServer(ClientError):
    """No server answers at the address."""


class Refused(ClientError):
    """The server returned an error. The text is the server's."""


class WrongPassword(Refused):
    """The server requires a password, and the client has none or another one."""


class NotUnique(Refused):
    """A job with the same unique key is already there. Nothing was pushed."""


class ServerFull(Refused):
    """The server accepted no more jobs for as long as the client was willing to wait."""


class PushRefused(Refused):
    """The server refused some jobs of a bulk push. The others were pushed."""

    def __init__(self, refused: dict[str, str], pushed: int) -> None:
        jid, why = next(iter(refused.items()))
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        super().__init__(f"{pushed} jobs were pushed; the server refused {jid}{more}: {why}")
        self.refused = refused  #: the server's reason, by jid
        self.pushed = pushed  #: the number of jobs that were accepted


class Broken(ClientError):
    """The connection was lost or a reply was invalid. The result of the last request is not known."""


class Closed(ClientError):
    """The client was closed, perhaps by another thread."""


class InvalidJob(ClientError):
    """The job cannot be sent. Nothing was pushed."""


class PayloadTooLarge(InvalidJob):
    """The job is longer than the server accepts."""


class Unsupported(ClientError):
    """The server does not have the extension that the call needs."""

    def __init__(self, extension: str, what: str) -> None:
        super().__init__(
            f"{what} needs the extension {extension!r}, which this server does not have; use a Crossdock server, "
            "or a newer one"
        )
        self.extension = extension


class UnknownJob(ClientError):
    """The server does not know the job, or no longer."""


class JobFailed(ClientError):
    """The job failed and has no tries left."""

    def __init__(
        self, jid: str, kind: str = "", message: str = "", backtrace: tuple[str, ...] = (), attempts: int = 0
    ) -> None:
        super().__init__(f"job {jid} failed: {kind or 'unknown'}: {message}")
        self.jid = jid
        self.kind = kind  #: the type of the last error
        self.message = message
        self.backtrace = backtrace
        self.attempts = attempts


class JobCancelled(ClientError):
    """The job was cancelled before it succeeded."""

    def __init__(self, jid: str, reason: str = "") -> None:
        super().__init__(f"job {jid} was cancelled{f': {reason}' if reason else ''}")
        self.jid = jid
        self.reason = reason


class ResultTimeout(ClientError, TimeoutError):
    """The job did not end in time. It may still run."""

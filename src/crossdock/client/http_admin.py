"""The admin protocol over HTTP: each request is a POST to /api/v1/admin (http-api.md section 6).

The history of a job is a request of its own, because another process of the server reads it.
"""

import http.client
import os
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from crossdock.client.admin import TIMEOUT_S, AdminClient
from crossdock.client.errors import Broken, ClientError, NoServer, Refused

_PATH: Final = "/api/v1/admin"
_HISTORY: Final = "/api/v1/jobs/{}/history?stream=true"
_HISTORY_OF_JID: Final = "/api/v1/history/jobs/{}?stream=true"

#: How often a request is repeated that the server has not accepted because there were too many.
_TRIES: Final = 60
_LONGEST_PAUSE_S: Final = 60.0

#: Longest reply.
_REPLY_BYTES: Final = 300 * 1024 * 1024
_TOKEN_BYTES: Final = 4_096

#: A connection is opened again after this many idle seconds. The server closes it after five.
_IDLE_S: Final = 3.0


class HttpAdminClient(AdminClient):
    """Certificates are always verified."""

    def __init__(self, url: str, token: str = "", ca_file: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """Raises NoServer if the URL is not one of a server, ClientError if it would send the token unprotected."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise NoServer(f"{url} is not the address of a server; write https://HOST:PORT")
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._used = 0.0
        try:
            port = parts.port
            if parts.scheme == "https":
                self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                    parts.hostname, port, timeout=timeout_s, context=_trusting(ca_file)
                )
            else:
                if token and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
                    raise ClientError(f"{url} is not encrypted, and the token would be readable; use https")
                self._connection = http.client.HTTPConnection(parts.hostname, port, timeout=timeout_s)
        except (OSError, ValueError) as error:
            raise NoServer(f"{url}: {error}") from error

    def history(self, ident: int | str) -> Iterator[dict[str, Any]]:
        """The events of a job from the lake, a part for each day, newest first. The last part has `finished` and says
        how far the search went. `ident` is a number, or a jid. Raises Refused."""
        path = _HISTORY.format(ident) if isinstance(ident, int) else _HISTORY_OF_JID.format(quote(ident, safe=""))
        for line in self._send("GET", path).splitlines():
            part = _decoded(line)
            if "error" in part:
                raise Refused(str(part["error"]))
            yield part

    def _exchange(self, line: bytes) -> bytes:
        return self._send("POST", _PATH, line)

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        for _ in range(_TRIES):
            status, headers, reply = self._request(method, path, body)
            if status != 429:
                return self._checked(status, reply)
            time.sleep(min(float(headers.get("Retry-After", "1")), _LONGEST_PAUSE_S))
        raise Broken(f"{self._url} still answers that there are too many requests")

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, Any, bytes]:
        """Raises NoServer if no request was sent, Broken if its result is not known."""
        if time.monotonic() - self._used > _IDLE_S:
            self._connection.close()
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except ssl.SSLCertVerificationError as error:
                raise NoServer(
                    f"the certificate of {self._url} is not trusted: {error.verify_message}; name the file of its "
                    "authority with --ca"
                ) from error
            except OSError as error:
                raise NoServer(f"no server answers at {self._url}: {error.strerror or error}") from error
        try:
            self._connection.request(method, path, body=body, headers=self._headers)
            response = self._connection.getresponse()
            reply = response.read(_REPLY_BYTES)
        except http.client.RemoteDisconnected as error:
            self._connection.close()
            raise Broken("the server closed the connection") from error
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Broken(f"the connection was lost: {error}") from error
        self._used = time.monotonic()
        return response.status, response.headers, reply

    def _checked(self, status: int, body: bytes) -> bytes:
        if status == 200:
            return body
        text = _error(body)
        if status == 401:
            raise Refused(f"{text}; name the file of the token with --token-file")
        if text and status < 500:
            raise Refused(text)
        raise Broken(f"{self._url}: {text or f'status {status}, which is not from a Crossdock server'}")

    def close(self) -> None:
        self._connection.close()


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    """Verifies certificates with those in a file, or with those of the system. Raises ClientError."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise ClientError(f"{ca_file} has no certificates that can be read (PEM): {error.reason}") from error
    except OSError as error:
        raise ClientError(f"{ca_file}: {error.strerror}") from error


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Broken(f"invalid reply from the server: {error}") from error


def _error(body: bytes) -> str:
    try:
        found: str = msgspec.json.decode(body, type=dict[str, str])["error"]
    except (msgspec.DecodeError, KeyError):
        return ""
    return found


def read_token(path: Path) -> str:
    """The token in a file: the last word of its first line, so that a line of http.token_file serves, too.

    Raises ClientError if other users can read it. Windows keeps access in lists, which are not checked.
    """
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ClientError(f"other users can read {path}; run chmod 600 {path}")
            words = file.read(_TOKEN_BYTES).decode("utf-8", "replace").partition("\n")[0].split()
    except OSError as error:
        raise ClientError(f"{path}: {error.strerror}") from error
    if not words:
        raise ClientError(f"there is no token in {path}")
    return words[-1]

"""The address of a server, as a URL."""

import os
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

#: The URL of clients that are given none.
URL_VARIABLE: Final = "CROSSDOCK_URL"
DEFAULT_URL: Final = "crossdock://localhost:7419"
PORT: Final = 7419
_SCHEMES: Final = {"crossdock": False, "tcp": False, "crossdock+tls": True, "tcp+tls": True}
_UNIX: Final = "crossdock+unix"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens. Its text and its repr do not show the password."""

    host: str = "localhost"
    port: int = PORT
    path: str = ""  #: of a UNIX socket
    password: str = ""
    tls: bool = False
    ca: str = ""  #: file with the certificates of the authorities that are trusted; the system's if empty

    def __str__(self) -> str:
        if self.path:
            return f"{_UNIX}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"crossdock{'+tls' if self.tls else ''}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({self})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("url", str(self))]  # the struct's own would show all fields


def parse_url(url: str | None = None) -> Address:
    """The address of a URL, or of `CROSSDOCK_URL`, or of the local server. Raises ValueError, which says how to write
    a URL. The error does not repeat the URL, because it may contain a password."""
    text = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError as error:
        raise _invalid(f"it cannot be read: {type(error).__name__}") from None
    password = unquote(parts.password or "")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    ca = options.pop("ca", "")
    if options or parts.fragment:
        raise _invalid("the only option is ca, the file of a certificate authority")
    if parts.scheme == _UNIX:
        path = unquote(parts.path)
        if not path or parts.hostname or ca:
            raise _invalid("a UNIX socket has a path only")
        return Address(path=path, password=password)
    if parts.scheme not in _SCHEMES:
        raise _invalid(f"its scheme is {parts.scheme!r}" if "://" in text else "it has no scheme")
    tls = _SCHEMES[parts.scheme]
    if not parts.hostname or parts.path not in ("", "/"):
        raise _invalid("it has no host" if not parts.hostname else "it has a path")
    if ca and not tls:
        raise _invalid("ca is for crossdock+tls only")
    return Address(host=unquote(parts.hostname), port=port, password=password, tls=tls, ca=ca)


def _invalid(why: str) -> ValueError:
    return ValueError(
        f"not the URL of a server: {why}; write crossdock://[:PASSWORD@]HOST[:PORT], "
        "crossdock+tls://[:PASSWORD@]HOST[:PORT][?ca=FILE] or crossdock+unix:///PATH"
    )

"""Which `Host` and `Origin` headers are accepted.

A web page of another site can make a browser send requests here. It cannot change these two headers. `Host` has the
name that the browser looked up, also if that name was bound to this address afterwards (DNS rebinding). `Origin` has
the site of the page.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from crossdock.settings.address import Address

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANY = ("0.0.0.0", "::", "")


class Hosts:
    """Ports are not compared: a tunnel may have another one, and an attacker's name is no better with a port."""

    def __init__(self, where: Address | None, names: Iterable[str]) -> None:
        self._names = {name.lower().strip("[]") for name in names}
        self._any_address = where is not None and where.host in _ANY
        if where is None or where.path or where.is_loopback or self._any_address:
            self._names.update(_LOOPBACK)
        if where is not None and where.host:
            self._names.add(where.host.lower())

    def accepts(self, host: str) -> bool:
        """A listener on all addresses is reached by any address. No name can be bound to a numeric host."""
        name = host_name(host)
        return name in self._names or (self._any_address and _is_address(name))

    @property
    def names(self) -> list[str]:
        return sorted(self._names)


def host_name(host: str) -> str:
    """The name in a Host header, without the port. "" if the header is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_same_origin(origin: str, host: str) -> bool:
    """Is the page that sent the request one of ours? The scheme is not compared: a proxy may add TLS."""
    scheme, separator, rest = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and rest.lower() == host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

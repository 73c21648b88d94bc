"""Addresses that a protocol listens on: `HOST:PORT`, `[::1]:PORT`, `tls:HOST:PORT`, `unix:PATH` or `off`."""

import ipaddress
from typing import NamedTuple


class Address(NamedTuple):
    host: str
    port: int = 0
    path: str = ""  #: of a UNIX socket
    tls: bool = False

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it. A host name other than localhost counts as not loopback."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        where = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"tls:{where}" if self.tls else where


def parse_address(text: str) -> Address | None:
    """None for `off`. Raises ValueError, which says how to write an address."""
    if text == "off":
        return None
    if text.startswith("unix:") and len(text) > 5:
        return Address("", 0, text[5:])
    host, colon, port = text.removeprefix("tls:").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(
            f"{text!r} is not an address; write HOST:PORT, tls:HOST:PORT, unix:PATH or off, for example 127.0.0.1:7419"
        )
    return Address(host, int(port), tls=text.startswith("tls:"))

"""The TLS context of the listeners, from the files that `[tls]` names.

The context of a running server takes a new certificate for new connections, and open connections go on. A new pair of
files is loaded into another context first, so a wrong file changes nothing.
"""

import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from crossdock import logs
from crossdock.model.errors import BadSetting

log = logging.getLogger("crossdock")

#: Seconds for a client to finish the TLS handshake.
HANDSHAKE_S: Final = 5.0


class TlsFiles(NamedTuple):
    cert: str
    key: str
    client_ca: str = ""  #: clients must show a certificate that one of these authorities has signed; "": none

    def versions(self) -> list[tuple[int, int] | None]:
        """Time and size of each file, to notice a change."""
        return [_version(name) for name in self if name]


class Certificate(NamedTuple):
    """What operators want to know of the certificate."""

    fingerprint: str  #: SHA-256
    expires: float  #: wall


class Tls:
    def __init__(self, files: TlsFiles) -> None:
        """Raises BadSetting that names the file."""
        self.files = files
        self._versions = files.versions()
        self.context = _context(files)
        self.certificate = read_certificate(files.cert)
        self._log("tls-loaded", "the certificate is")

    def reload(self, files: TlsFiles) -> bool:
        """Use these files for new connections, if they have changed. Returns whether they have. Raises BadSetting, and
        then nothing is changed."""
        versions = files.versions()
        if files == self.files and versions == self._versions:
            return False
        _context(files)
        self.context.load_cert_chain(files.cert, files.key)
        if files.client_ca:
            self.context.load_verify_locations(files.client_ca)
        self.files, self._versions = files, versions
        self.certificate = read_certificate(files.cert)
        self._log("tls-reloaded", "new connections get the certificate")
        return True

    def _log(self, event: str, text: str) -> None:
        expires = datetime.fromtimestamp(self.certificate.expires, UTC).strftime("%Y-%m-%d")
        text = f"{text} {self.certificate.fingerprint[:16]}…, valid until {expires}"
        logs.event(log, logging.INFO, event, text, fingerprint=self.certificate.fingerprint, expires=expires)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise BadSetting(f"tls.cert = {files.cert} and tls.key = {files.key} cannot be used: {_why(error)}") from error
    if files.client_ca:
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise BadSetting(f"tls.client_ca = {files.client_ca} cannot be used: {_why(error)}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted; remove its passphrase, and let only the server's user read the file")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key does not belong to the certificate"
        return "they are not a certificate and a key in PEM format" if error.reason in (None, "PEM") else error.reason
    return str(getattr(error, "strerror", None) or error)


def read_certificate(path: str) -> Certificate:
    """The first certificate of a file. Raises BadSetting."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        found = x509.load_pem_x509_certificate(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise BadSetting(f"tls.cert = {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return Certificate(found.fingerprint(SHA256()).hex(), found.not_valid_after_utc.timestamp())


def _version(name: str) -> tuple[int, int] | None:
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size

import ssl
from pathlib import Path

import pytest

from crossdock.auth.self_signed import LOCAL, write_self_signed
from crossdock.auth.tls import Tls, TlsFiles, read_certificate
from crossdock.model.errors import BadSetting
from tests.support.certificates import Authority


def files(authority: Authority, name: str = "server") -> TlsFiles:
    pair = authority.sign(name)
    return TlsFiles(str(pair.cert), str(pair.key))


def test_old_versions_and_renegotiation_are_off(tmp_path: Path) -> None:
    context = Tls(files(Authority(tmp_path))).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.verify_mode is ssl.CERT_NONE


def test_clients_need_a_certificate_if_there_are_authorities_for_them(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert Tls(files(authority)._replace(client_ca=str(authority.ca))).context.verify_mode is ssl.CERT_REQUIRED


def test_changed_files_are_loaded_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first = files(authority)
    tls = Tls(first)
    before = tls.certificate
    assert not tls.reload(first)
    authority.sign("server", days=1)
    assert tls.reload(first)
    assert tls.certificate.fingerprint != before.fingerprint
    assert tls.certificate.expires < before.expires
    assert not tls.reload(first)


def test_a_wrong_file_changes_nothing(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = Tls(files(authority))
    before, other = tls.certificate, files(authority, "other")
    with pytest.raises(BadSetting, match="the key does not belong to the certificate"):
        tls.reload(tls.files._replace(key=other.key))
    assert tls.certificate == before
    assert not tls.reload(tls.files)


@pytest.mark.parametrize("wrong", ["missing", "empty", "text"])
def test_an_unusable_file_is_named(tmp_path: Path, wrong: str) -> None:
    authority = Authority(tmp_path)
    path = tmp_path / "wrong.pem"
    if wrong != "missing":
        path.write_text("" if wrong == "empty" else "no certificate\n")
    good = files(authority)
    for bad, name in (
        (good._replace(cert=str(path)), "tls.cert"),
        (good._replace(key=str(path)), "tls.key"),
        (good._replace(client_ca=str(path)), "tls.client_ca"),
    ):
        with pytest.raises(BadSetting, match=rf"{name} = .*wrong.pem"):
            Tls(bad)


def test_a_self_signed_certificate_can_be_used(tmp_path: Path) -> None:
    cert, key = write_self_signed(tmp_path / "new", ["jobs.test", *LOCAL], 30)
    assert key.stat().st_mode & 0o777 == 0o600
    assert Tls(TlsFiles(str(cert), str(key))).certificate == read_certificate(str(cert))
    with pytest.raises(FileExistsError):
        write_self_signed(tmp_path / "new", LOCAL, 30)

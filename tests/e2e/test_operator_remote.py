"""The command line with `--server`: pushes through the HTTP API, and HTTPS with a certificate that is verified."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.command_line import Operator
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

TOKEN: Final = "0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def certificate(folder: Path) -> Path:
    return self_signed(folder, "server")


@pytest.fixture(scope="module")
def server(folder: Path, certificate: Path) -> Iterator[Server]:
    tokens = folder / "tokens"
    tokens.write_text(f"ops {TOKEN}\n")
    tokens.chmod(0o600)
    settings = {
        "http.password": "correct horse",
        "http.token_file": str(tokens),
        "tls.cert": str(certificate),
        "tls.key": str(certificate.with_suffix(".key")),
    }
    with Server(folder / "data", settings, protocols=("faktory", "http"), tls=("http",)) as running:
        yield running


@pytest.fixture
def remote(server: Server, folder: Path, certificate: Path) -> Operator:
    return Operator(folder, server=url(server), token_file=folder / "tokens", ca=certificate)


def url(server: Server, host: str = "localhost") -> str:
    return f"https://{host}:{server.ports['http']}"


def self_signed(folder: Path, name: str) -> Path:
    """A certificate for localhost, and its key beside it. OpenSSL's command is the only way without a new package."""
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: HTTPS with --ca, because the command openssl is not installed")
    file = folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(file.with_suffix(".key")), "-out", str(file)],
        check=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    return file


def test_commands_run_over_https_with_the_certificate_that_ca_names(server: Server, remote: Operator) -> None:
    assert remote.json("queue", "list").keys() == {"queues"}
    flags = ("--server", url(server), "--token-file", str(remote.folder / "tokens"), "--ca", "server.pem")
    assert Operator(remote.folder).json(*flags, "queue", "list") == remote.json("queue", "list")


def test_a_certificate_of_another_authority_is_refused(server: Server, remote: Operator, tmp_path: Path) -> None:
    remote.environment["CROSSDOCK_CA"] = str(self_signed(tmp_path, "other"))
    ended = remote.run("queue", "list")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"crossdock: the certificate of {url(server)} is not trusted: self")
    assert ended.err.endswith("; name the file of its authority with --ca\n")
    del remote.environment["CROSSDOCK_CA"]
    assert "is not trusted: self" in remote.run("queue", "list").err, "the system does not know it either"


def test_a_certificate_for_another_name_is_refused(server: Server, remote: Operator) -> None:
    remote.environment["CROSSDOCK_SERVER"] = url(server, "127.0.0.1")
    ended = remote.run("queue", "list")
    assert ended.code == 1
    assert "is not trusted: IP address mismatch" in ended.err


def test_a_file_without_certificates_is_an_error(server: Server, remote: Operator, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for file in (empty, tmp_path / "missing.pem"):
        remote.environment["CROSSDOCK_CA"] = str(file)
        ended = remote.run("queue", "list")
        assert ended.code == 1
        assert str(file) in ended.err


def test_a_push_goes_through_the_api_and_is_audited(server: Server, remote: Operator, folder: Path) -> None:
    pushed = remote.json(
        "push", "far", "welcome", "[42, 12345678901234567890123]", "--jid", "job-remote", "--at", "1h",
        "--priority", "9", "--retry", "3", "--reserve-for", "60", "--custom", '{"a": 1}', "--tag", "vip",
    )  # fmt: skip
    assert pushed == {"jid": "job-remote"}
    here = Operator(folder, server_data="data")
    found = here.json("job", "show", "job-remote")["job"]
    assert (found["state"], found["queue"], found["kind"], found["tags"]) == ("scheduled", "far", "welcome", ["vip"])
    assert (found["payload"], found["custom"]["a"]) == ([42, 12345678901234567890123], 1)
    assert (found["priority"], found["policy"]["max_failures"], found["policy"]["lease_s"]) == (4, 3, 60)
    row = here.json("audit", "list")["audit"][0]
    assert (row["user"], row["via"], row["action"], row["count"]) == ("ops", "http", "push", 1)
    assert row["target"].startswith(f"jobs:{found['number']} queue:far kind:welcome")
    assert "job-remote" not in row["target"]
    again = remote.run("push", "far", "welcome", "[]", "--jid", "job-remote")
    assert (again.code, again.err) == (
        1, "crossdock: the job was not pushed: a job with this jid exists; leave jid out to get a new one\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("push", "q", "k", "[]", "--via", "qless"), "leave out --via qless, or name --listen instead"),
        (("push", "q", "k", "[]", "--ttl", "1h"), "the HTTP API has no --ttl"),
        (("push", "q", "k"), "give QUEUE KIND ARGS_JSON"),
        (("push", "q", "k", "[]", "--listen", "faktory=127.0.0.1:1"), "give one of them"),
        (("job", "take", "q", "--done", "--listen", "faktory=127.0.0.1:1"), "give one of them"),
        (
            ("job", "take", "q", "--done"),
            "leave out --server and name the listener, such as --listen faktory=HOST:PORT",
        ),
        (("job", "take", "q", "--done", "--via", "workq"), "such as --listen workq=HOST:PORT"),
    ],
)
def test_what_http_cannot_do_is_refused_with_the_cure(
    server: Server, remote: Operator, arguments: tuple[str, ...], text: str
) -> None:
    ended = remote.run("--server", url(server), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert text in ended.err


def test_listen_wins_over_the_server_of_the_environment(server: Server, remote: Operator) -> None:
    listen = ("--listen", f"faktory=127.0.0.1:{server.port}")
    remote.output("push", "near", "welcome", "[]", "--jid", "job-near", *listen)
    assert remote.json("job", "show", "job-near")["job"]["origin"] == "faktory"
    assert remote.json("job", "take", "near", "--done", *listen)["settled"] == "done"
    assert remote.run("job", "take", "near", "--done").code == 2

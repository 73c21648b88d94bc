"""Every warning of doctor, from a real cause where a test can create it, and no warning otherwise."""

import os
import resource
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crossdock.cli import diagnosis
from crossdock.cli.commands.doctor import Report
from crossdock.cli.main import main
from crossdock.journal.data_dir import DataDir, NotADirectory
from crossdock.server import admission
from crossdock.server import diagnosis as machine
from crossdock.server.diagnosis import IN_MEMORY, MOUNTS, NETWORK, file_system
from crossdock.settings.loading import Found, load
from crossdock.settings.table import TABLE
from tests.support.certificates import Authority

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and an environment without any warning on every machine."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CROSSDOCK_")]:
        monkeypatch.delenv(name)
    on_disk = Path("mountinfo")
    on_disk.write_text("27 1 254:0 / / rw - ext4 /dev/vda rw\n", "ascii")
    monkeypatch.setattr(machine, "MOUNTS", on_disk)
    monkeypatch.setattr(machine, "free_bytes", lambda folder: 10 * 1024 * admission.MIB)
    monkeypatch.setattr(admission, "free_bytes", lambda folder: 10 * 1024 * admission.MIB)
    monkeypatch.setattr(admission, "total_bytes", lambda folder: 100 * 1024 * admission.MIB)


def warned(file: Path | None = None, **settings: Any) -> list[str]:
    """The warnings for these settings, `section_key=value`."""
    few = {"limits_connections": 1, **settings}  # a small machine has few descriptors
    named = {f"{setting.section}_{setting.key}": name for name, setting in TABLE.items()}
    return diagnosis.warnings(load({named[key]: Found(value, "flag") for key, value in few.items()}, os.environ, file))


def test_a_healthy_environment_has_no_warning() -> None:
    assert warned() == []


def test_durability_everysec_is_warned_of() -> None:
    (warning,) = warned(journal_durability="everysec")
    assert warning.startswith("journal.durability = everysec: a power cut can lose the last second")


@pytest.mark.parametrize("where", ["0.0.0.0:7419", "[::]:7419", "example.com:7419"])
def test_a_listener_beyond_loopback_without_a_secret_is_reported(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (warning,) = warned(listen_faktory=where)
    assert warning.startswith(f"the server will not start: listen.faktory = {where} is reachable from other machines")
    monkeypatch.setenv("CROSSDOCK_FAKTORY_PASSWORD", "x")
    (warning,) = warned(listen_faktory=where)
    assert warning == (
        f"the server will not start: listen.faktory = {where} is reachable from other machines without TLS; write "
        f"tls:{where} and set tls.cert and tls.key, or set tls.allow_plaintext = true if a proxy or a tunnel adds TLS"
    )
    assert warned(listen_faktory=where, tls_allow_plaintext=True) == []


def test_each_protocol_needs_its_own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSDOCK_FAKTORY_PASSWORD", "x")
    (warning,) = warned(listen_redis="0.0.0.0:7379")
    assert warning == (
        "the server will not start: listen.redis = 0.0.0.0:7379 is reachable from other machines and has no password; "
        "set redis.password in the settings file or CROSSDOCK_REDIS_PASSWORD, or listen on 127.0.0.1"
    )
    monkeypatch.setenv("CROSSDOCK_REDIS_PASSWORD", "y")
    assert warned(listen_redis="0.0.0.0:7379", tls_allow_plaintext=True) == []


@pytest.mark.parametrize("where", ["0.0.0.0:9922", "[::]:9922", "example.com:9922"])
@pytest.mark.parametrize("protocol", ["workq", "masenko"])
def test_a_protocol_without_passwords_may_not_listen_beyond_this_machine(
    protocol: str, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CROSSDOCK_FAKTORY_PASSWORD", "x")
    (warning,) = warned(None, **{f"listen_{protocol}": where})
    assert warning == (
        f"the server will not start: listen.{protocol} = {where} is reachable from other machines, and "
        f"{protocol.capitalize()}'s protocol has no password; listen on 127.0.0.1 or unix:PATH and let other "
        "machines use a tunnel (ssh -L, a VPN), or write tls: before the address and set tls.client_ca, so that "
        "clients need a certificate"
    )
    pair = Authority(tmp_path).sign("server", days=90)
    files = {"tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    assert len(warned(None, **{f"listen_{protocol}": f"tls:{where}"}, **files)) == 1
    assert warned(None, **{f"listen_{protocol}": f"tls:{where}"}, **files, tls_client_ca=str(pair.cert)) == []
    assert warned(None, **{f"listen_{protocol}": "unix:/run/crossdock.sock"}) == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "has no password"),
        ({"http_password": "secret"}, "is reachable from other machines without TLS"),
        ({"http_password": "secret", "listen_http": "tls:0.0.0.0:7420"}, "needs tls.cert and tls.key"),
    ],
)
def test_an_http_listener_beyond_loopback_needs_a_password_and_tls(settings: dict[str, str], why: str) -> None:
    [warning] = warned(None, **{"listen_http": "0.0.0.0:7420"} | settings)
    assert warning.startswith("the server will not start: ") and why in warning
    assert warned(listen_http="0.0.0.0:7420", http_password="secret", tls_allow_plaintext=True) == []


def test_a_certificate_that_expires_soon_is_warned_of(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    for days, warning in ((30, ""), (3.5, "expires in 3 days"), (-1, "has expired")):
        pair = authority.sign("server", days=days)
        found = warned(tls_cert=str(pair.cert), tls_key=str(pair.key))
        expected = f"tls.cert = {pair.cert} {warning}; replace the file, then run crossdock reload"
        assert found == ([expected] if warning else [])


def test_too_few_descriptors_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (256, 4_096))
    assert warned(limits_connections=3_996) == []
    (warning,) = warned(limits_connections=3_997)
    assert warning.startswith("4096 file descriptors are too few for limits.connections = 3997; raise the limit to 4")
    monkeypatch.setattr(resource, "getrlimit", lambda what: (256, resource.RLIM_INFINITY))
    assert warned(limits_connections=3_997) == []


def test_little_disk_space_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_bytes", lambda folder: 1_023 * admission.MIB)
    (warning,) = warned()
    assert warning.startswith("only 1023 MiB of disk are free for the data folder")


def test_a_disk_below_the_watermark_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "free_bytes", lambda folder: 255 * admission.MIB)
    (warning,) = warned()
    assert warning.startswith("new jobs will be refused: the disk is nearly full (255 MiB free, 256 MiB kept)")
    assert warned(journal_min_free_mib=255) == []


@pytest.mark.skipif(not SHARED_MEMORY.is_mount(), reason="this machine has no tmpfs at /dev/shm")
def test_a_data_folder_in_memory_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOUNTS", MOUNTS)
    (warning,) = warned(server_data=str(SHARED_MEMORY / "not" / "there yet"))
    assert warning.startswith("the data folder is on tmpfs, in memory: a reboot loses every job")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "ceph"])
def test_a_data_folder_on_a_network_file_system_is_warned_of(kind: str, tmp_path: Path) -> None:
    with Path("mountinfo").open("a", encoding="ascii") as file:
        file.write(f"28 27 0:99 / {tmp_path} rw - {kind} server:/x rw\n")
    (warning,) = warned(server_data="far")
    assert warning.startswith(f"the data folder is on {kind}, a network file system")


def test_the_deepest_and_latest_mount_counts() -> None:
    mounts = "\n".join(
        [
            r"41 27 0:41 / /a\040b/c rw,relatime master:1 - nfs4 host:/x rw",
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
            "30 27 0:30 / /a rw - xfs /dev/b rw",
            "31 30 0:31 / /a rw - btrfs /dev/c rw",
        ]
    )
    assert file_system(Path("/"), mounts) == "ext4"
    assert file_system(Path("/ab"), mounts) == "ext4"
    assert file_system(Path("/a/x"), mounts) == "btrfs"
    assert file_system(Path("/a b/c/d"), mounts) == "nfs4"


def test_the_mounts_of_this_machine_are_parsed(tmp_path: Path) -> None:
    mounts = MOUNTS.read_text("utf-8")
    assert file_system(Path("/proc/self"), mounts) == "proc"
    assert file_system(tmp_path, mounts) not in ("", "proc")


def test_no_file_system_is_both_in_memory_and_network() -> None:
    assert not IN_MEMORY & NETWORK


def test_a_data_folder_that_is_a_file_is_warned_of() -> None:
    Path("file").touch()
    (warning,) = warned(server_data="file")
    assert warning.startswith("the server will not start: ")
    assert warning.endswith("file is not a folder; set server.data to one")


@pytest.mark.parametrize("below", ["", "/jobs"])
def test_a_data_folder_on_an_unmounted_disk_is_warned_of(below: str) -> None:
    Path("data").symlink_to("/mnt/nowhere/data")
    (warning,) = warned(server_data=f"data{below}")
    assert warning.startswith("the server will not start: ")
    assert "data links to /mnt/nowhere/data, which does not exist; mount its disk, or set" in warning
    with pytest.raises(NotADirectory, match=r"which does not exist; mount its disk"):
        DataDir(Path(f"data{below}"))


def test_a_read_only_data_folder_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    (warning,) = warned()
    assert warning.startswith("the server will not start: this user cannot write to")


def test_a_password_in_a_file_readable_by_others_is_warned_of() -> None:
    file = Path("some.toml")
    file.write_text('[faktory]\npassword = "x"\n', "utf-8")
    file.chmod(0o644)
    assert warned(file) == [
        "some.toml holds faktory.password and every user of this machine can read it; run chmod 600 some.toml"
    ]
    file.chmod(0o640)
    assert warned(file) == []


def test_a_readable_file_without_a_password_is_not_warned_of() -> None:
    file = Path("some.toml")
    file.write_text("[limits]\njobs = 5\n", "utf-8")
    file.chmod(0o644)
    assert warned(file) == []


def test_invalid_rate_limits_are_warned_of() -> None:
    file = Path("some.toml")
    file.write_text('[rate.mail]\nrate = "10/m"\n', "utf-8")
    assert warned(file) == ['the server will not start: rate.mail: set either queue = "NAME" or kind = "NAME"']


def test_invalid_throttles_and_cron_entries_are_warned_of() -> None:
    file = Path("some.toml")
    file.write_text(
        '[throttles]\nmail = { }\n[[cron]]\nschedule = "61 * * * *"\nname = "sweeper"\n[cron.job]\ntype = "sweep"\n',
        "utf-8",
    )
    throttle, cron = warned(file)
    assert throttle.startswith("the server will not start: throttles.mail: set either concurrency = N")
    assert cron.startswith('the server will not start: cron "sweeper": schedule "61 * * * *" in time zone "UTC" is')


def test_an_unknown_variable_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSDOCK_SERVER_DATE", "x")
    assert warned() == ["CROSSDOCK_SERVER_DATE is not a setting and has no effect; did you mean CROSSDOCK_SERVER_DATA?"]


def test_an_old_sqlite_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.51.2")
    assert warned() == ["the server will not start: SQLite 3.51.2 is too old; install apsw 3.51.3 or newer"]


def test_a_running_server_is_a_note_not_a_warning(tmp_path: Path) -> None:
    folder = DataDir(tmp_path / "jobs")
    settings = load({"server.data": Found("jobs", "flag")}, {}).settings
    assert diagnosis.notes(settings)[0].startswith("jobs is empty: a server there starts empty;")
    folder.lock()
    assert diagnosis.notes(settings) == [f"the data folder is in use by process {os.getpid()}: a server is running"]
    assert warned(server_data="jobs") == []
    folder.unlock()
    assert diagnosis.notes(settings)[0].startswith("jobs holds only the lock file of an earlier server: a server")


def test_doctor_creates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(Path().iterdir())
    assert main(["doctor", "--limits-connections", "1"]) == 0
    assert set(Path().iterdir()) == before
    out = capsys.readouterr().out
    assert "note: the data folder crossdock-data does not exist yet; crossdock up creates it\n" in out
    assert out.endswith("no warnings\n")


def test_json_output_has_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--limits-connections", "1", "--journal-durability", "everysec"]) == 1
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    shown = {setting.name: (setting.value, setting.source) for setting in report.settings}
    assert list(shown) == list(TABLE)
    assert shown["journal.durability"] == ("everysec", "flag --journal-durability")
    assert shown["faktory.password"] == ("not set", "default")
    assert len(report.warnings) == 1

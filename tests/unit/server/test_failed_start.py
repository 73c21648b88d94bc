"""A failed start removes the data folder that it created, and never one that existed."""

import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.journal.completeness import begins_empty
from crossdock.journal.data_dir import LOCK, DataDir, DataDirInUse, NotADirectory
from tests.support.command_line import Operator
from tests.support.server import Server

OFF = [word for protocol in ("workq", "masenko", "redis") for word in ("--listen", f"{protocol}=off")]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_port_in_use_leaves_no_folder(tmp_path: Path, taken: int) -> None:
    for words in (["--listen", f"faktory=127.0.0.1:{taken}"], ["--listen", "faktory=unix:no/where"]):
        ended = Operator(tmp_path).run("up", "--data", "new/deep/jobs", *OFF, *words)
        assert (ended.code, ended.out) == (1, "") and "cannot be opened" in ended.err
        assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_of_the_second_listener_leaves_no_folder(tmp_path: Path, taken: int) -> None:
    """No client can connect to the first listener before the second is bound: its acknowledged jobs would be lost."""
    words = ["--listen", "faktory=127.0.0.1:0", "--listen", "workq=off", "--listen", "masenko=off"]
    ended = Operator(tmp_path).run("up", "--data", "jobs", *words, "--listen", f"redis=127.0.0.1:{taken}")
    assert ended.code == 1 and ended.err.startswith(f"crossdock: listen.redis = 127.0.0.1:{taken} cannot be opened")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_and_the_parents_of_a_new_one_are_unchanged(tmp_path: Path, taken: int) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "mine.txt").write_text("mine")
    words = [*OFF, "--listen", f"faktory=127.0.0.1:{taken}"]
    for data in ("empty", "above/jobs", "above/a/b"):
        assert Operator(tmp_path).run("up", "--data", data, *words).code == 1
    assert [path.name for path in (tmp_path / "above").iterdir()] == ["mine.txt"]
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o755


def test_a_folder_with_jobs_keeps_them(tmp_path: Path, taken: int) -> None:
    with Server(tmp_path / "data") as server, server.client() as client:
        client.push("job-00001")
        server.kill()
    assert Operator(tmp_path).run("up", "--data", "data", *OFF, "--listen", f"faktory=127.0.0.1:{taken}").code == 1
    with Server(tmp_path / "data") as server, server.client() as client:
        assert client.fetch() is not None


def test_a_server_that_was_ready_keeps_its_folder(tmp_path: Path) -> None:
    with Server(tmp_path / "data"):
        pass
    assert (tmp_path / "data" / "journal.db").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert main(["up", "--data", str(tmp_path / "new" / "jobs"), *OFF, "--listen", "faktory=off"]) == 1
    finally:
        tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_leaves_no_parent_folders(tmp_path: Path) -> None:
    data = tmp_path / "new" / "deep" / ("x" * 300)
    assert main(["up", "--data", str(data), *OFF, "--listen", "faktory=off"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_that_another_server_has_locked_is_kept(tmp_path: Path) -> None:
    ours = DataDir(tmp_path / "a" / "jobs")
    theirs = DataDir(tmp_path / "a" / "jobs")
    assert ours.is_new and not theirs.is_new
    theirs.lock()
    with pytest.raises(DataDirInUse):
        ours.lock()
    ours.discard()
    assert [path.name for path in (tmp_path / "a" / "jobs").iterdir()] == [LOCK]
    theirs.unlock()


def test_a_lock_file_that_was_removed_between_open_and_lock_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other start failed and removed its files."""
    ours, theirs = DataDir(tmp_path / "jobs"), DataDir(tmp_path / "jobs")
    ours.lock()
    real = fcntl.flock

    def late(fd: int, how: int) -> None:
        ours.discard()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(DataDirInUse, match="was removed by another server that failed to start; try again"):
        theirs.lock()
    assert not (tmp_path / "jobs").exists()


def test_discard_keeps_other_files_above_the_folder(tmp_path: Path) -> None:
    folder = DataDir(tmp_path / "a" / "jobs")
    folder.lock()
    (folder.path / "lake" / "events").mkdir(parents=True)
    (folder.path / "journal.db").touch()
    (tmp_path / "a" / "other").mkdir()
    folder.discard()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["other"]


def test_a_path_that_is_not_a_folder_is_refused_and_nothing_is_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for data in ("file", "file/below", "link", "link/below"):
        with pytest.raises(NotADirectory):
            DataDir(tmp_path / data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_warning_names_a_folder_without_a_journal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    operator = Operator(tmp_path, server_data="data")
    assert begins_empty(data) == "", "a new folder has no warning"
    cure = (
        "a server there starts empty; if it should have jobs, mount its disk, correct server.data, or restore a backup"
    )
    data.mkdir()
    assert begins_empty(data) == f"{data} is empty: {cure}"
    (data / LOCK).touch()
    only = f"{data} holds only the lock file of an earlier server: {cure}"
    assert begins_empty(data) == only
    assert f"note: data holds only the lock file of an earlier server: {cure}" in operator.run("doctor").out
    assert "holds no journal (journal.db), only a lock file" in operator.run("check", "--data", "data").err
    (data / "notes.txt").touch()
    assert begins_empty(data) == f"{data} holds no journal (journal.db): {cure}"
    (data / "notes.txt").unlink()
    with Server(data) as server:
        assert f" WARNING {only} event=data-empty\n" in server.log()
    assert begins_empty(data) == ""
    with Server(data) as server:
        assert "starts empty" not in server.log()
    (data / "journal.db").unlink()
    assert begins_empty(data) == "", "a server does not start there: the ballast of a lost journal is there"

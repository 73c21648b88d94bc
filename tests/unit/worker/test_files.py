"""Options, sandboxes, the status file, and the watched sources."""

import os
from pathlib import Path

import msgspec
import pytest

from crossdock.worker import sandbox, status
from crossdock.worker.loading import NotLoadable, check_target
from crossdock.worker.memory import rss_bytes
from crossdock.worker.options import read_size
from crossdock.worker.reload import SourceWatcher


@pytest.mark.parametrize(
    ("text", "size"),
    [("512M", 512 * 1024**2), ("2G", 2 * 1024**3), ("100", 100), ("3 MiB", 3 * 1024**2), ("1kb", 1024)],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "M", "-1M", "1.5G", "1X", "٣M"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        read_size(text)


@pytest.mark.parametrize("target", ["shop", "shop.tasks", "shop.tasks:app", "shop.tasks:apps.main"])
def test_targets(target: str) -> None:
    check_target(target)


@pytest.mark.parametrize("target", ["", "shop/tasks.py", "tasks.py", "a:b:c", "a-b", ".a", "a;b", "1a"])
def test_wrong_targets(target: str) -> None:
    with pytest.raises(NotLoadable, match="is not a module"):
        check_target(target)


def test_a_sandbox_is_emptied_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("stays")
    folder = sandbox.create(tmp_path / "boxes", os.getpid(), 1)
    (folder / "inner" / "deep").mkdir(parents=True)
    (folder / "inner" / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    (folder / "inner").chmod(0o500)
    sandbox.empty(folder)
    assert list(folder.iterdir()) == []
    assert Path.cwd() == folder
    assert outside.read_text() == "stays"
    monkeypatch.chdir(tmp_path)
    sandbox.remove(folder)
    sandbox.empty(folder)  # a task had removed it
    assert folder.is_dir()


def test_sandboxes_of_killed_workers_are_removed(tmp_path: Path) -> None:
    mine, other = sandbox.create(tmp_path, os.getpid(), 1), sandbox.create(tmp_path, 2**22 + 1, 1)
    sandbox.remove_abandoned(tmp_path)
    assert mine.exists()
    assert not other.exists()


def healthy(**fields: object) -> status.Status:
    known: dict[str, object] = {
        "pid": os.getpid(), "wid": "w", "target": "shop", "server": "crossdock://h:7419", "state": "running",
        "written_at": 100.0, "reached_at": 99.0, "processes": 1, "ready": 1, "slots": 10, "running": 0, "done": 5,
        "failed": 0,
    }  # fmt: skip
    return msgspec.convert(known | fields, status.Status)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, ""),
        ({"state": "quiet"}, ""),
        ({"written_at": 50.0}, "it has not written its status for 51 s"),
        ({"ready": 0}, "no process is ready to run jobs"),
        ({"reached_at": 40.0}, "the server crossdock://h:7419 has not replied for 61 s"),
        ({"reached_at": 0.0}, "as long as the worker has been running"),
        ({"problem": "cannot import shop"}, "cannot import shop"),
        ({"pid": 2**22 + 1}, "has ended"),
    ],
)
def test_the_check_names_the_problem(fields: dict[str, object], problem: str) -> None:
    found = status.problem_of(healthy(**fields), now=101.0)
    assert problem in found
    assert bool(found) is bool(problem)


def test_a_status_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    assert status.read(file) is None
    status.write(file, healthy())
    assert status.read(file) == healthy()
    file.write_text("{")
    assert status.read(file) is None
    assert [each.name for each in tmp_path.iterdir()] == ["status.json"]


def test_files_of_ended_workers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    status.write(status.default_file(os.getpid()), healthy())
    gone = status.default_file(2**22 + 1)
    status.write(gone, healthy(pid=2**22 + 1))
    assert [each.pid for each in status.found()] == [os.getpid()]
    assert not gone.exists()


def test_a_changed_new_or_removed_source_is_seen(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "package" / "second.py"
    second.parent.mkdir()
    first.write_text("1")
    second.write_text("1")
    watcher = SourceWatcher(tmp_path)
    watcher.watch([str(second)])
    assert watcher.changed() is None
    second.write_text("22")
    assert watcher.changed() == str(second)
    assert watcher.changed() is None
    (second.parent / "third.py").write_text("3")
    assert watcher.changed() == str(second.parent / "third.py")
    first.unlink()
    assert watcher.changed() == str(first)


def test_memory_of_a_process() -> None:
    used = rss_bytes(os.getpid())
    assert used is None or used > 1024 * 1024
    assert rss_bytes(2**22 + 1) is None

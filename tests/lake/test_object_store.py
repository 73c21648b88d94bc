"""A lake in an object store that speaks S3: exporter, two writers, readers, maintenance, status and check."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.lake import maintenance as module
from crossdock.lake.commits import Overtaken
from crossdock.lake.exporter import Exporter
from crossdock.lake.location import read_position
from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import Chores, Options, Position
from crossdock.lake.query import Filter, choose, jobs
from crossdock.lake.table import Lake, NoLake, Unreachable
from crossdock.lake.verify import verify
from crossdock.lake.writer import LakeInUse, Writer
from tests.lake.source import SERVER, ListSource, rows_in, rows_of, story
from tests.support.journals import Writer as Journal
from tests.support.object_store import BUCKET, object_store
from tests.support.states import eventful


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store():
        yield f"s3://{BUCKET}"


@pytest.fixture
def lake(bucket: str, request: pytest.FixtureRequest) -> str:
    return f"{bucket}/{request.node.name}"


def write_all(lake: str, data: Path, source: ListSource, entries_each: int = 400) -> None:
    writer = Writer(lake, data, source, server=SERVER)
    try:
        while writer.read < len(source.entries):
            until = writer.read + entries_each
            for _ in writer.take(lambda until=until: writer.read >= until):  # type: ignore[misc]
                pass
            writer.publish()
    finally:
        writer.close()


def test_every_row_is_in_the_lake_once(lake: str, tmp_path: Path) -> None:
    with pytest.raises(NoLake):
        Lake.open(lake)
    write_all(lake, tmp_path, ListSource(story()))
    assert rows_in(lake) == rows_of(story())
    found = Lake.open(lake)
    assert (found.last, found.server, found.location) == (len(story()), SERVER, lake)
    assert found.uri(found.files()[0]).startswith(f"{lake}/date=")
    assert found.added(1) == [each._replace(version=2) for each in found.files() if each.first > 400]
    reported = read_position(tmp_path, lake)
    assert reported is not None and reported.last == len(story())
    assert list((tmp_path / "lake.drafts").glob("*.parquet")) == []


def test_of_two_writers_one_commits_and_the_other_reads_again(lake: str, tmp_path: Path) -> None:
    first = Writer(lake, tmp_path / "one", ListSource(story()), server=SERVER)
    second = Writer(lake, tmp_path / "two", ListSource(story()))
    for writer, until in ((first, 100), (second, 150)):
        for _ in writer.take(lambda writer=writer, until=until: writer.read >= until):  # type: ignore[misc]
            pass
    first.publish()
    with pytest.raises(Overtaken, match="only one server may write to a lake"):
        second.publish()
    first.close()
    second.close()
    assert rows_in(lake) == rows_of(story()[:100])
    write_all(lake, tmp_path / "two", ListSource(story()))
    assert rows_in(lake) == rows_of(story())


def test_a_data_folder_has_one_exporter(lake: str, tmp_path: Path) -> None:
    first = Writer(lake, tmp_path, ListSource(story()))
    with pytest.raises(LakeInUse):
        Writer(lake, tmp_path, ListSource(story()))
    first.close()


def test_maintenance_works_as_on_a_disk(lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 5)
    write_all(lake, tmp_path, ListSource(story()), 60)
    before = Lake.open(lake)
    works = Maintenance(Chores(data=tmp_path, location=lake))
    works.run()
    after = Lake.open(lake)
    assert len(after.files()) < len(before.files()) and after.last == before.last
    assert rows_in(lake) == rows_of(story())
    gone = works.clean_up(time.time() + 3 * 86_400.0)
    assert any(name.endswith(".json") for name in gone) and any(name.endswith(".parquet") for name in gone)
    assert rows_in(lake) == rows_of(story())
    newest = max(file.date for file in after.files())
    steady = after.transaction(f"crossdock.steady_ms.{newest}") / 1_000
    assert works.expire(0, steady) == sorted({file.date for file in after.files()} - {newest})
    assert {file.date for file in Lake.open(lake).files()} == {newest}
    write_all(lake, tmp_path, ListSource([*story(), *story()[:1]]))
    assert Lake.open(lake).last == len(story()) + 1


def test_a_server_exports_to_it_and_the_command_line_reads_it(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSDOCK_LAKE_DIR", lake)
    server = Journal(tmp_path / "data")
    server.tell(eventful())
    told: list[Position] = []
    exporter = Exporter(Options(data=server.path, location=lake, segment_s=0.001), told.append)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.close()
    assert told[-1] == Position(server.journal.last, 0)
    server.close()
    chosen = choose(lake, Filter(outcome="pushed"))
    assert len(list(jobs(chosen))) == len(chosen.numbers) > 1
    data = ["--data", str(tmp_path / "data")]
    assert main(["lake", "status", *data]) == 0
    said = capsys.readouterr().out
    assert f"lake     {lake}\n" in said and "nothing: the lake has the whole journal" in said
    assert main(["check", *data]) == 0
    capsys.readouterr()
    assert not (tmp_path / "data" / "lake").exists()
    store = Lake.open(lake).store
    file = Lake.open(lake).files()[0]
    store.delete(file.path)
    assert main(["check", *data]) == 1
    assert f"{file.path} is damaged: it is missing" in capsys.readouterr().out


def test_a_damaged_object_is_reported(lake: str, tmp_path: Path) -> None:
    write_all(lake, tmp_path, ListSource(story()))
    found = Lake.open(lake)
    file = found.files()[0]
    data = bytearray(found.store.read(file.path))
    data[len(data) // 2] ^= 1
    found.store.write(file.path, bytes(data))
    (fault,) = verify(lake).faults
    assert f"{lake}/{file.path} is damaged: the data fails its checksum" in fault


def test_a_store_that_denies_access_is_named(bucket: str) -> None:
    missing = f"{bucket}-missing/lake"
    with pytest.raises(Unreachable, match=f"{missing} cannot be read: .*; see the credentials and the endpoint"):
        Lake.open(missing)

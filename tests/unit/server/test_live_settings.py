"""The settings in effect, with their sources and without secrets."""

from pathlib import Path

from crossdock.server.live_settings import settings_in_effect
from crossdock.settings.loading import Found, load
from crossdock.settings.table import LISTS, TABLE


def test_every_setting_is_listed_with_its_value_and_source(tmp_path: Path) -> None:
    file = tmp_path / "crossdock.toml"
    file.write_text('[limits]\njobs = 5\n[throttles]\nmail = { concurrency = 1 }\n[mapping.static.s]\na = "p"\n')
    loaded = load({"server.log": Found("debug", "flag --server-log")}, {"CROSSDOCK_REDIS_PASSWORD": "s3cret"}, file)
    rows = {row.name: row for row in settings_in_effect(loaded.settings, loaded.sources, str(file))}
    assert rows.keys() == TABLE.keys() | LISTS
    assert (rows["server.log"].value, rows["server.log"].source) == ("debug", "flag --server-log")
    assert (rows["limits.jobs"].value, rows["limits.jobs"].source) == ("5", f"file {file}")
    assert (rows["listen.faktory"].value, rows["listen.faktory"].source) == ("127.0.0.1:7419", "default")
    assert (rows["throttles"].value, rows["throttles"].source) == ("1 entry", f"file {file}")
    assert (rows["mapping"].value, rows["cron"].value) == ("1 entry", "0 entries")
    assert all(row.description for row in rows.values())


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    loaded = load({}, {"CROSSDOCK_REDIS_PASSWORD": "s3cret"}, None)
    rows = {row.name: row for row in settings_in_effect(loaded.settings, loaded.sources, "")}
    assert rows["redis.password"].value == "set"
    assert rows["faktory.password"].value == "not set"
    assert "s3cret" not in repr(rows)

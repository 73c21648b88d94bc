"""Settings: which place wins, what is refused and how, and the reference page that must match."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crossdock.model.errors import BadSetting
from crossdock.settings.loading import Found, Loaded, load
from crossdock.settings.reference import page
from crossdock.settings.schema import Settings
from crossdock.settings.table import TABLE

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crossdock.toml in the folder of the test run must not count."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "some.toml") -> Path:
    path = Path(name)
    path.write_text(text, "utf-8")
    return path


def configured(
    file: str = "", environment: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Loaded:
    given = {name: Found(value, f"flag {TABLE[name].flag}") for name, value in (flags or {}).items()}
    return load(given, environment or {}, write(file))


def test_nothing_set_means_the_defaults() -> None:
    found = load({}, {})
    assert found.settings == Settings()
    assert set(found.sources.values()) == {"default"}
    assert found.file is None


def test_flag_before_environment_before_file_before_default() -> None:
    file = "[limits]\nconnections = 1\njobs = 1\nreply_buffer_kib = 100\n"
    environment = {"CROSSDOCK_LIMITS_CONNECTIONS": "2", "CROSSDOCK_LIMITS_JOBS": "2"}
    found = configured(file, environment, {"limits.connections": "3"})
    limits = found.settings.limits
    assert (limits.connections, limits.jobs, limits.reply_buffer_kib) == (3, 2, 100)
    assert found.sources["limits.connections"] == "flag --limits-connections"
    assert found.sources["limits.jobs"] == "environment CROSSDOCK_LIMITS_JOBS"
    assert found.sources["limits.reply_buffer_kib"] == "file some.toml"
    assert found.sources["server.data"] == "default"


def test_the_file_is_the_one_named_then_the_variables_then_the_folders() -> None:
    def data(environment: dict[str, str], config: Path | None = None) -> str:
        return str(load({}, environment, config).settings.server.data)

    named, by_variable = write('[server]\ndata = "named"', "a.toml"), write('[server]\ndata = "variable"', "b.toml")
    variable = {"CROSSDOCK_CONFIG": str(by_variable)}
    write('[server]\ndata = "folder"', "crossdock.toml")
    assert data(variable, named) == "named"
    assert data(variable) == "variable"
    assert data({}) == "folder"
    assert data({"CROSSDOCK_CONFIG": ""}) == "folder"


def test_every_setting_can_be_set_in_every_place() -> None:
    other = {bool: "true", int: "17", float: "1.5", str: "text", Path: "elsewhere"}
    for setting in TABLE.values():
        text = setting.choices[-1] if setting.choices else other[setting.base]
        text = "unix:/x" if setting.section == "listen" else text
        toml = text if setting.base in (bool, int, float) else f'"{text}"'
        section, key = setting.name.split(".")
        by_variable = configured(environment={setting.variable: text}).settings
        by_flag = configured(flags={setting.name: text}).settings
        by_file = configured(f"[{section}]\n{key} = {toml}").settings
        assert by_variable == by_flag == by_file
        assert str(getattr(getattr(by_file, section), key)).lower() == text


def test_an_empty_variable_counts_as_not_set() -> None:
    assert configured(environment={"CROSSDOCK_LIMITS_JOBS": ""}).settings == Settings()


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("[jornal]\nx = 1", "some.toml: unknown section [jornal]; did you mean journal?"),
        (
            '[journal]\ndurabilty = "always"',
            "some.toml: unknown setting journal.durabilty; did you mean journal.durability?",
        ),
        ("[server]\nport = 1", "some.toml: unknown setting server.port; crossdock up --help lists all"),
        (
            'data = "x"',
            "some.toml: data stands outside of a section; the sections are server, listen, journal, lake, faktory,",
        ),
        ("[server]\ndata = 5", "server.data = 5 (file some.toml) is not allowed; it must be a path"),
        ('[server]\ndata = ""', "server.data = '' (file some.toml) is not allowed; it must be a path"),
        ('[server]\nflush = "true"', "server.flush = 'true' (file some.toml) is not allowed; it must be true or false"),
        (
            "[limits]\njobs = true",
            "limits.jobs = True (file some.toml) is not allowed; it must be a whole number, at least 1",
        ),
        (
            "[faktory]\nline_mib = 257",
            "faktory.line_mib = 257 (file some.toml) is not allowed; it must be a whole number, at least 1, at most",
        ),
        (
            "[faktory]\nhandshake_s = nan",
            "faktory.handshake_s = nan (file some.toml) is not allowed; it must be a number, above 0, at most 60",
        ),
        (
            '[journal]\ndurability = "never"',
            "journal.durability = 'never' (file some.toml) is not allowed; it must be always or everysec",
        ),
        (
            '[listen]\nfaktory = "7419"',
            "listen.faktory = '7419' (file some.toml) is not allowed; it must be HOST:PORT, unix:PATH or off",
        ),
        (
            '[throttles]\nmail = { concurrency = "x" }',
            "some.toml: throttles.mail: concurrency: Expected `int | null`, got `str`; docs/reference/settings.md",
        ),
        ("[throttles]\nmail = 3", "some.toml: throttles.mail: Expected `object`, got `int`;"),
        ("[throttles]\nmail = { wroker = 3 }", "some.toml: throttles.mail: Object contains unknown field `wroker`;"),
        ("throttles = 3", "some.toml: throttles: Expected `object`, got `int`;"),
        ('[[cron]]\nschedule = "x"\n', "some.toml: cron entry 1: Object missing required field `job`;"),
        (
            '[[cron]]\nschedule = "x"\njob = { type = "a" }\n[[cron]]\nname = "b"\nschedule = "x"\njob = { type = 5 }',
            'some.toml: cron "b": job.type: Expected `str`, got `int`;',
        ),
        ("cron = [1]", "some.toml: cron entry 1: Expected `object`, got `int`;"),
        ("[mapping.static.shop]\na = 5", "some.toml: mapping.static.shop: Expected `str`, got `int`;"),
        ("[mapping]\nstatic = 5", "some.toml: mapping: static: Expected `object`, got `int`;"),
        ("[mapping.statik.shop]\na = 'b'", "some.toml: mapping: Object contains unknown field `statik`;"),
        ("[[[", "the configuration file some.toml is not TOML: Invalid initial character"),
    ],
)
def test_a_bad_file_is_reported_in_one_sentence(file: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        configured(file)
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("LIMITS_JOBS", "many", "limits.jobs = 'many' (environment CROSSDOCK_LIMITS_JOBS) is not allowed; it must be"),
        ("LIMITS_JOBS", "0", "limits.jobs = '0' (environment CROSSDOCK_LIMITS_JOBS) is not allowed; it must be"),
        (
            "SERVER_DATA",
            os.fsdecode(b"\xff"),
            "server.data = '\\udcff' (environment CROSSDOCK_SERVER_DATA) is not allowed",
        ),
        ("SERVER_FLUSH", "yes", "server.flush = 'yes' (environment CROSSDOCK_SERVER_FLUSH) is not allowed; it must be"),
        ("LISTEN_FAKTORY", "h:99999", "listen.faktory = 'h:99999' (environment CROSSDOCK_LISTEN_FAKTORY) is not"),
    ],
)
def test_a_bad_variable_is_named(variable: str, text: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        configured(environment={f"CROSSDOCK_{variable}": text})
    assert str(raised.value).startswith(sentence)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadSetting, match=r"^the configuration file no\.toml cannot be read: No such file"):
        load({}, {"CROSSDOCK_CONFIG": "no.toml"})


def test_a_file_that_is_not_text_is_refused() -> None:
    Path("binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match=r"^the configuration file binary\.toml is not TOML: "):
        load({}, {}, Path("binary.toml"))


def test_a_bad_secret_is_not_printed() -> None:
    with pytest.raises(BadSetting) as raised:
        configured("[faktory]\npassword = 271828")
    assert str(raised.value) == "faktory.password (file some.toml) is not allowed; it must be text in UTF-8"
    with pytest.raises(BadSetting, match=r"^faktory\.password \(environment CROSSDOCK_FAKTORY_PASSWORD\)"):
        configured(environment={"CROSSDOCK_FAKTORY_PASSWORD": os.fsdecode(b"\xff")})


def test_unknown_variables_are_warned_of_and_nothing_else() -> None:
    known = {"CROSSDOCK_CONFIG": "", "CROSSDOCK_FAKTORY_PASSWORD": "y"}
    found = configured(environment={"CROSSDOCK_FAKTORY_PASSWORT": "x", "HOME": "/", **known})
    assert found.warnings == [
        "CROSSDOCK_FAKTORY_PASSWORT is no setting and has no effect; did you mean CROSSDOCK_FAKTORY_PASSWORD?"
    ]
    assert found.settings.faktory.password == "y"


def test_every_setting_is_described_and_its_default_is_allowed() -> None:
    for setting in TABLE.values():
        assert setting.description
        assert not setting.description.endswith(".")
        text = str(setting.default).lower() if setting.is_switch else str(setting.default)
        section = getattr(configured(environment={setting.variable: text}).settings, setting.section)
        assert getattr(section, setting.key) == setting.default


def test_passwords_are_secrets() -> None:
    assert [setting.name for setting in TABLE.values() if setting.is_secret] == ["faktory.password", "redis.password"]
    assert TABLE["faktory.password"].show("hunter2") == "set"
    assert TABLE["faktory.password"].show("") == "not set"


def test_the_reference_page_matches_the_settings() -> None:
    assert REFERENCE.read_text("utf-8") == page(), "run make docs"

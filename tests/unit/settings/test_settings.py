"""Settings: precedence of sources, errors for invalid values, and the reference page."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crossdock.model.errors import BadSetting
from crossdock.settings.loading import Found, Loaded, load
from crossdock.settings.reference import page
from crossdock.settings.schema import Settings, seconds
from crossdock.settings.table import TABLE

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crossdock.toml in the folder of the test run must not be read."""
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


def test_defaults_apply_if_nothing_is_set() -> None:
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


def test_the_file_is_taken_from_the_option_then_the_variable_then_the_folder() -> None:
    def data(environment: dict[str, str], config: Path | None = None) -> str:
        return str(load({}, environment, config).settings.server.data)

    named, by_variable = write('[server]\ndata = "named"', "a.toml"), write('[server]\ndata = "variable"', "b.toml")
    variable = {"CROSSDOCK_CONFIG": str(by_variable)}
    write('[server]\ndata = "folder"', "crossdock.toml")
    assert data(variable, named) == "named"
    assert data(variable) == "variable"
    assert data({}) == "folder"
    assert data({"CROSSDOCK_CONFIG": ""}) == "folder"


def test_every_setting_can_be_set_in_every_source() -> None:
    other = {bool: "true", int: "17", float: "1.5", str: "text", Path: "elsewhere"}
    for setting in TABLE.values():
        text = setting.choices[-1] if setting.choices else other[setting.base]
        text = "unix:/x" if setting.section == "listen" else text
        text = "http://host:4318" if setting.name == "server.otlp_endpoint" else text
        toml = text if setting.base in (bool, int, float) else f'"{text}"'
        section, key = setting.name.split(".")
        by_variable = configured(environment={setting.variable: text}).settings
        by_flag = configured(flags={setting.name: text}).settings
        by_file = configured(f"[{section}]\n{key} = {toml}").settings
        assert by_variable == by_flag == by_file
        assert str(getattr(getattr(by_file, section), key)).lower() == text


def test_an_empty_variable_counts_as_unset() -> None:
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
            "some.toml: data is outside of a section; the sections are server, listen, journal, lake, pipeline,",
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
            "some.toml: throttles.mail: concurrency: Expected `int | null`, got `str`; crossdock up --help",
        ),
        ("[throttles]\nmail = 3", "some.toml: throttles.mail: Expected `object`, got `int`;"),
        ("[throttles]\nmail = { wroker = 3 }", "some.toml: throttles.mail: Object contains unknown field `wroker`;"),
        ('[rate.mail]\nqueue = "mail"', "some.toml: rate.mail: Object missing required field `rate`;"),
        (
            '[rate.mail]\nqueue = "mail"\nrate = "10 per m"',
            "some.toml: rate.mail: rate = '10 per m' is not a rate; write a number from 1 to 1,000,000 and its unit",
        ),
        ('[rate.mail]\nrate = "0/s"', "some.toml: rate.mail: rate = '0/s' is not a rate;"),
        ('[rate.mail]\nwhen = 1\nrate = "1/s"', "some.toml: rate.mail: Object contains unknown field `when`;"),
        ("rate = 3", "some.toml: rate: Expected `object`, got `int`;"),
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
        (
            '[server]\nname = "my server"',
            "server.name = 'my server' (file some.toml) is not allowed; it must be up to 64 letters, digits,",
        ),
        (
            f'[server]\nname = "{"a" * 65}"',
            f"server.name = '{'a' * 65}' (file some.toml) is not allowed; it must be up",
        ),
        ('[server]\nname = "a\\n"', "server.name = 'a\\n' (file some.toml) is not allowed"),
        (
            '[lake]\ngroup = "a b"',
            "lake.group = 'a b' (file some.toml) is not allowed; it must be empty, or the name or number of a group",
        ),
        (
            "[pipeline]\nkeep_hourly_days = -1",
            "pipeline.keep_hourly_days = -1 (file some.toml) is not allowed; it must be a whole number, at least 0",
        ),
        (
            "[pipeline]\nprice_per_worker_hour = inf",
            "pipeline.price_per_worker_hour = inf (file some.toml) is not allowed; it must be a number, at least 0, at",
        ),
        (
            '[pipeline]\ncurrency = "€\\u0007"',
            "pipeline.currency = '€\\x07' (file some.toml) is not allowed; it must be up to 16 characters",
        ),
        ("[pipeline]\nkeep_days = 1", "some.toml: unknown setting pipeline.keep_days"),
        ("slo = 3", "some.toml: slo: Expected `object`, got `int`;"),
        ("[slo]\nmail = 3", "some.toml: slo.mail: Expected `object`, got `int`;"),
        ("[slo.mail]\nratio = 0.9", "some.toml: slo.mail: Object missing required field `done_within`;"),
        (
            '[slo.mail]\ndone_within = "5 min"',
            "some.toml: slo.mail: done_within = '5 min' is not a duration; write a number and its unit (ms, s, m, h or",
        ),
        ("[slo.mail]\ndone_within = 300", "some.toml: slo.mail: done_within: Expected `str`, got `int`;"),
        ('[slo.mail]\ndone_within = "0s"', "some.toml: slo.mail: done_within = '0s' is not a duration;"),
        ('[slo.mail]\ndone_within = "367d"', "some.toml: slo.mail: done_within = '367d' is not a duration;"),
        ('[slo.mail]\ndone_within = "٣s"', "some.toml: slo.mail: done_within = '٣s' is not a duration;"),
        ('[slo.mail]\ndone_within = "1m"\nratio = 1', "some.toml: slo.mail: ratio: Expected `float` < 1.0;"),
        ('[slo.mail]\ndone_within = "1m"\nratio = 0', "some.toml: slo.mail: ratio: Expected `float` > 0.0;"),
        (
            '[slo.mail]\ndone_within = "1m"\nstart_within = "soon"',
            "some.toml: slo.mail: start_within = 'soon' is not a duration;",
        ),
        (
            '[slo.mail]\ndone_within = "1m"\nstart_within = "61s"',
            "some.toml: slo.mail: start_within = '61s' is longer than done_within = '1m';",
        ),
        (
            '[slo.mail]\ndone_within = "1m"\nratios = 0.9',
            "some.toml: slo.mail: Object contains unknown field `ratios`;",
        ),
        ("[[[", "the settings file some.toml is not valid TOML: Invalid initial character"),
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
def test_a_bad_variable_is_reported_by_name(variable: str, text: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        configured(environment={f"CROSSDOCK_{variable}": text})
    assert str(raised.value).startswith(sentence)


def test_a_missing_file_is_reported_by_name() -> None:
    with pytest.raises(BadSetting, match=r"^cannot read the settings file no\.toml: No such file"):
        load({}, {"CROSSDOCK_CONFIG": "no.toml"})


def test_a_file_that_is_not_text_is_refused() -> None:
    Path("binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match=r"^the settings file binary\.toml is not valid TOML: "):
        load({}, {}, Path("binary.toml"))


def test_a_bad_secret_is_not_printed() -> None:
    with pytest.raises(BadSetting) as raised:
        configured("[faktory]\npassword = 271828")
    assert str(raised.value) == "faktory.password (file some.toml) is not allowed; it must be text in UTF-8"
    with pytest.raises(BadSetting, match=r"^faktory\.password \(environment CROSSDOCK_FAKTORY_PASSWORD\)"):
        configured(environment={"CROSSDOCK_FAKTORY_PASSWORD": os.fsdecode(b"\xff")})


def test_only_unknown_variables_are_warned_of() -> None:
    known = {"CROSSDOCK_CONFIG": "", "CROSSDOCK_FAKTORY_PASSWORD": "y"}
    found = configured(environment={"CROSSDOCK_FAKTORY_PASSWORT": "x", "HOME": "/", **known})
    assert found.warnings == [
        "CROSSDOCK_FAKTORY_PASSWORT is not a setting and has no effect; did you mean CROSSDOCK_FAKTORY_PASSWORD?"
    ]
    assert found.settings.faktory.password == "y"


def test_variables_of_clients_and_of_the_command_line_are_no_mistakes() -> None:
    assert load({}, {"CROSSDOCK_URL": "crossdock://host", "CROSSDOCK_SERVER": "https://host:7420"}).warnings == []


def test_objectives_are_read_by_queue() -> None:
    text = """
        [slo.mail]
        done_within = "5m"
        ratio = 0.999
        start_within = "10s"
        [slo."billing.eu"]
        done_within = "1.5h"
    """
    found = configured(text).settings.slo
    assert {queue: (each.done_within_s, each.ratio, each.start_within_s) for queue, each in found.items()} == {
        "mail": (300.0, 0.999, 10.0),
        "billing.eu": (5_400.0, 0.99, None),
    }


@pytest.mark.parametrize(
    ("text", "length"), [("250ms", 0.25), ("30s", 30.0), ("5m", 300.0), ("2h", 7_200.0), ("366d", 366 * 86_400.0)]
)
def test_a_duration_has_a_unit(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "5S", "1e3s", "1h30m", ".5s", "5s\n"])
def test_a_text_without_a_number_and_a_unit_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("host", "name"),
    [("shop-1.example", "shop-1.example"), ("ein Wirt", "ein-Wirt"), ("h" * 70, "h" * 64), ("", "localhost")],
)
def test_a_server_without_a_name_has_that_of_its_host(monkeypatch: pytest.MonkeyPatch, host: str, name: str) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    assert configured().settings.server.name_or_host == name
    assert configured('[server]\nname = "berlin_1"').settings.server.name_or_host == "berlin_1"


def test_every_setting_is_described_and_its_default_is_allowed() -> None:
    for setting in TABLE.values():
        assert setting.description
        assert not setting.description.endswith(".")
        text = str(setting.default).lower() if setting.is_switch else str(setting.default)
        section = getattr(configured(environment={setting.variable: text}).settings, setting.section)
        assert getattr(section, setting.key) == setting.default


def test_passwords_are_secrets() -> None:
    assert [setting.name for setting in TABLE.values() if setting.is_secret] == [
        "faktory.password",
        "redis.password",
        "http.password",
    ]
    assert TABLE["faktory.password"].show("hunter2") == "set"
    assert TABLE["faktory.password"].show("") == "not set"


def test_the_reference_page_matches_the_settings() -> None:
    assert REFERENCE.read_text("utf-8") == page(), "run make docs"

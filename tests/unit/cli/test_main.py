"""The command line as a process: output, exit codes, and the examples of its reference page."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from crossdock import __version__
from crossdock.cli import reference
from crossdock.cli.catalog import COMMANDS, Noun
from crossdock.cli.main import CatalogGroup, crossdock, main
from crossdock.server.endpoints import LISTENERS
from crossdock.settings.table import TABLE
from tests.support.patience import PATIENCE_S

DOCS = Path(__file__).parents[3] / "docs"

#: Variables of the test run's own environment that could configure Crossdock are removed.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}


CROSSDOCK = [sys.executable, "-m", "crossdock"]

#: Another server on this machine may use the default ports.
CLOSED = [word for name in sorted(LISTENERS) for word in ("--listen", f"{name}=off")]
LISTEN = [word.replace("faktory=off", "faktory=127.0.0.1:0") for word in CLOSED]


#: The words of every command: nouns, and verbs of nouns.
PATHS = [[name] for name in COMMANDS] + [
    [name, verb] for name, noun in COMMANDS.items() if isinstance(noun, Noun) for verb in noun.verbs
]


class Ended(NamedTuple):
    out: str
    err: str
    code: int


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped at the end and killed if it does not end."""
    with subprocess.Popen(
        command, cwd=folder, env=CLEAN, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
            watchdog.cancel()


def until_ready(process: subprocess.Popen[str]) -> str:
    """The output of the server up to its last start line, or all output if it ends earlier."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("ready"):
            break
    return said


def run(arguments: list[str], folder: Path) -> Ended:
    """Run to the end. A server that becomes ready is stopped."""
    with started([*CROSSDOCK, *arguments], folder) as process:
        said = until_ready(process)
        if "\nready" in said:
            process.terminate()
        rest, err = process.communicate()
    return Ended(said + rest, err, process.returncode)


def test_up_prints_its_listeners_and_stops_on_a_signal(tmp_path: Path) -> None:
    ended = run(["up", "--data", "jobs", *LISTEN], tmp_path)
    assert ended.code == 0
    assert not re.search("WARNING|ERROR", ended.err)
    protocol = re.search(r"^  faktory   127\.0\.0\.1:(\d+)$", ended.out, re.MULTILINE)
    assert protocol is not None
    assert int(protocol[1]) > 0
    assert (tmp_path / "jobs" / "journal.db").exists()


def test_up_raises_its_descriptor_limit(tmp_path: Path) -> None:
    command = ["sh", "-c", 'ulimit -Sn 256 && exec "$0" "$@"', *CROSSDOCK, "up", *CLOSED]
    with started(command, tmp_path) as process:
        until_ready(process)
        limits = Path(f"/proc/{process.pid}/limits").read_text("ascii")
    soft, hard = re.findall(r"^Max open files +(\d+) +(\d+)", limits, re.MULTILINE)[0]
    assert soft == hard
    assert soft != "256"


def test_a_second_server_is_refused_in_one_sentence(tmp_path: Path) -> None:
    first = ["up", "--data", "jobs", *LISTEN]
    with started([*CROSSDOCK, *first], tmp_path) as process:
        until_ready(process)
        second = run(first, tmp_path)
        doctor = run(["doctor", "--data", "jobs"], tmp_path)
    assert second.code == 1
    assert second.err == (
        f"crossdock: jobs is in use by process {process.pid}; stop it, or choose another folder with --data\n"
    )
    assert f"note: the data folder is in use by process {process.pid}: a server is running\n" in doctor.out


def test_a_data_folder_that_is_a_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = f"{(tmp_path / 'file').resolve()} is not a folder; set server.data to one\n"
    for data in ("file", "file/below"):
        assert run(["up", "--data", data, *CLOSED], tmp_path) == Ended("", f"crossdock: {sentence}", 1)
        assert f"warning: the server will not start: {sentence}" in run(["doctor", "--data", data], tmp_path).out


def test_a_port_in_use_is_reported_without_advice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        taken = run(["up", *(word.replace("faktory=off", f"faktory={where}") for word in CLOSED)], tmp_path)
    cure = "choose another address: --listen faktory=HOST:PORT, or listen.faktory in the settings\n"
    assert taken == Ended(
        "",
        f"crossdock: listen.faktory = {where} cannot be opened: Address already in use; "
        f"stop the server that uses it, or {cure}",
        1,
    )
    nowhere = run(["up", *(word.replace("faktory=off", "faktory=unix:no/where") for word in CLOSED)], tmp_path)
    assert f"unix:no/where cannot be opened: No such file or directory; {cure}" in nowhere.err


def test_an_invalid_cron_line_stops_up_before_it_writes_anything(tmp_path: Path) -> None:
    (tmp_path / "crossdock.toml").write_text('[[cron]]\nschedule = "61 * * * *"\n[cron.job]\ntype = "sweep"\n', "utf-8")
    ended = run(["up", "--data", "jobs", "--listen", "faktory=off"], tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith('crossdock: cron "sweep 61 * * * *": schedule "61 * * * *" in time zone "UTC"')
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize(
    ("file", "variable", "flags"),
    [
        ("[throttles]\nmail = { }", "", ()),
        ('[throttles]\n"" = { worker = 1 }', "", ()),
        ("[throttles]\nmail = { worker = 0 }", "", ()),
        ('[rate.mail]\nrate = "1/s"', "", ()),
        ('[rate.mail]\nrate = "1/s"\nqueue = "a"\nkind = "b"', "", ()),
        ('[rate.mail]\nrate = "1/s"\nqueue = ""', "", ()),
        ('[[cron]]\nschedule = "nope"\njob = { type = "a" }', "", ()),
        ('[[cron]]\nschedule = "* * * * *"\njob = { type = "a", queue = "b c" }', "", ()),
        ('[mapping.static.shop]\na = "b"', "", ()),
        ("x = [", "", ()),
        ("[server]\nnope = 1", "", ()),
        ("", "CROSSDOCK_LIMITS_JOBS=many", ()),
        ("", "CROSSDOCK_LISTEN_FAKTORY=7419", ()),
        ("", "CROSSDOCK_SERVER_FLUSH=perhaps", ()),
        ("", "", ("--listen", "faktory=nope")),
        ("", "", ("--listen", "faktory=0.0.0.0:0")),
        ("", "", ("--listen", "workq=0.0.0.0:0")),
        ("", "", ("--listen", "http=0.0.0.0:0")),
        ("", "", ("--listen", "nope=127.0.0.1:0")),
        ("", "", ("--limits-jobs", "0")),
    ],
)
def test_bad_settings_exit_with_code_2_and_create_no_folder(
    file: str,
    variable: str,
    flags: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CROSSDOCK_")]:
        monkeypatch.delenv(name)
    if variable:
        monkeypatch.setenv(*variable.split("="))
    Path("some.toml").write_text(file, "utf-8")
    options = ["--config", "some.toml", "--data", "new/jobs", *flags]
    assert main(["up", *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("crossdock: ") and shown.err.count("\n") == 1
    assert main(["doctor", *options]) == 2
    assert not Path("new").exists()


def test_a_warning_of_up_is_logged_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLEAN, "CROSSDOCK_LIMIT_JOBS", "1")
    ended = run(["up", *CLOSED, "--server-log", "warning"], tmp_path)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING CROSSDOCK_LIMIT_JOBS is not a setting and has no effect; "
        r"did you mean CROSSDOCK_LIMITS_JOBS\? event=setting-unknown\n",
        ended.err,
    )


def test_a_secret_is_never_printed(tmp_path: Path) -> None:
    (tmp_path / "crossdock.toml").write_text('[faktory]\npassword = "hunter2"\n[server]\nlog = "debug"\n', "utf-8")
    up = run(["up", *LISTEN], tmp_path)
    doctor, as_json = run(["doctor"], tmp_path), run(["doctor", "--json"], tmp_path)
    assert up.code == 0
    assert re.search(r"faktory\.password +set +file crossdock\.toml", doctor.out)
    assert "hunter2" not in "".join([*map(str, up), *map(str, doctor), *map(str, as_json)])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["upp"], "No such command 'upp'. Did you mean 'up'?"),
        (["up", "--jornal-durability", "always"], "No such option '--jornal-durability'. Did you mean"),
        (["up", "extra"], "Got unexpected extra argument (extra)"),
        (
            ["up", "--listen", "faktory"],
            "--listen faktory is not PROTOCOL=ADDRESS; the protocols are faktory, workq, masenko,",
        ),
        (
            ["up", "--listen", "smtp=off"],
            "--listen smtp=off is not PROTOCOL=ADDRESS; the protocols are faktory, workq,",
        ),
        (["up", "--listen", "faktory=off", "--listen-faktory", "off"], "listen.faktory is given twice"),
        (["up", "--data", "a", "--server-data", "b"], "server.data is given twice"),
        (["up", "--listen", "faktory=here"], "listen.faktory = 'here' (flag --listen) is not allowed; it must be"),
        (["up", "--limits-jobs", "0"], "limits.jobs = '0' (flag --limits-jobs) is not allowed; it must be a whole"),
        (["up", "--faktory-password", "x"], "--faktory-password is not a flag, because every user of this machine"),
        (["doctor", "--config", "no.toml"], "cannot read the settings file no.toml: No such file or directory"),
    ],
)
def test_wrong_usage_is_reported_in_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"crossdock: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["-h"], *([*path, "--help"] for path in PATHS), ["job"]], ids=" ".join
)
def test_help_has_examples(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Examples:\n    crossdock " in capsys.readouterr().out


def loaded(path: list[str]) -> click.Command:
    command: click.Command = crossdock
    for word in path:
        assert isinstance(command, CatalogGroup)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_catalog_has_the_help_text_of_each_command(path: list[str]) -> None:
    entry = COMMANDS[path[0]]
    if len(path) == 2:
        assert isinstance(entry, Noun)
        assert loaded(path).name == path[1]
        entry = entry.verbs[path[1]]
    assert loaded(path).get_short_help_str(200) == entry.help


@pytest.mark.parametrize(
    "path", [path for path in PATHS if not isinstance(COMMANDS[path[0]], Noun) or len(path) == 2], ids=" ".join
)
def test_every_command_that_ends_by_itself_can_print_json(path: list[str]) -> None:
    names = [name for param in loaded(path).params for name in param.opts]
    assert ("--json" in names) is (path not in (["up"], ["demo"], ["worker", "run"]))


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["jobs"], "'job list'"),
        (["queues"], "'queue list'"),
        (["batches"], "'batch list'"),
        (["retry"], "'job retry'"),
        (["pause"], "'queue pause'"),
        (["unfail"], "'job retry'"),
        (["try"], "'job take'"),
        (["cron"], "'schedule list'"),
        (["version"], "'--version'"),
        (["schedul"], "'schedule list' or 'schedule'"),
        (["job", "lst"], "'job list'"),
        (["job", "rm"], "'job delete'"),
        (["job", "pause"], "'queue pause'"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(
    arguments: list[str], suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    sentence = f"crossdock: No such command {' '.join(arguments)!r}. Did you mean {suggested}?\n"
    assert capsys.readouterr().err in (sentence, sentence.replace("'schedule list' or ", ""))


def test_an_unknown_name_without_a_similar_one_refers_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "xyzzy"]) == 2
    assert capsys.readouterr().err == "crossdock: No such command 'job xyzzy'. crossdock job --help lists all.\n"


def completed(words: str, index: int, folder: Path) -> list[str]:
    """The completions that bash offers for this word."""
    environment = CLEAN | {"_CROSSDOCK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    done = subprocess.run(CROSSDOCK, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_tab_completes_commands_options_and_names_of_the_server(tmp_path: Path) -> None:
    assert completed("crossdock sch", 1, tmp_path) == ["schedule"]
    assert completed("crossdock job re", 2, tmp_path) == ["retry", "release", "replay"]
    assert completed("crossdock job list --st", 3, tmp_path) == ["--state"]
    assert completed("crossdock nonsense x", 2, tmp_path) == []
    assert completed("crossdock queue show ma", 3, tmp_path) == [], "there is no server"
    with started([*CROSSDOCK, "up", "--data", "crossdock-data", *LISTEN], tmp_path) as process:
        said = until_ready(process)
        address = re.findall(r"faktory   (\S+)", said)[0]
        for queue in ("mail", "main", "other"):
            assert (
                run(["push", queue, "k", "[]", "--jid", f"{queue}-job", "--listen", f"faktory={address}"], tmp_path)[2]
                == 0
            )
        assert completed("crossdock queue show ma", 3, tmp_path) == ["mail", "main"]
        assert completed("crossdock job show other", 3, tmp_path) == ["other-job"]
        assert completed("crossdock job list --queue m", 4, tmp_path) == ["mail", "main"]


def test_help_does_not_import_the_server() -> None:
    look = "import sys; from crossdock.cli.main import main; main(['--help']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert "crossdock.cli.main" in modules
    assert not {"crossdock.server.app", "crossdock.engine.engine", "pyarrow", "deltalake"} & set(modules)


def test_a_disabled_protocol_is_not_imported() -> None:
    look = (
        "import sys; from crossdock.server import app, endpoints; from crossdock.settings.schema import Settings;"
        "where = {name: at for name, at in endpoints.addresses(Settings()).items() if name == 'faktory'};"
        "print(*endpoints.build(Settings(), where), *sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert {"faktory", "crossdock.protocols.faktory.protocol"} <= set(modules)
    others = ("workq.protocol", "masenko.protocol", "redis.protocol", "redis.qless.service", "redis.resqu.service")
    assert not {f"crossdock.protocols.{name}" for name in others} & set(modules)
    assert "crossdock.server.lake_keeper" in modules
    assert not {"pyarrow", "deltalake"} & set(modules), "only the lake's processes and readers use them"


@pytest.mark.parametrize("verb", ["up", "doctor"])
def test_help_lists_every_setting_except_secrets(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, "--help"])
    words = capsys.readouterr().out.split()
    assert {setting.flag for setting in TABLE.values() if setting.flag in words} == {
        setting.flag for setting in TABLE.values() if not setting.is_secret
    }
    assert "--no-server-flush" in words


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"crossdock {__version__}\n"


EXAMPLES = re.findall(
    r"^```console\n\$ crossdock (.*)\n([^`]*)^```$",
    (DOCS / "how-to" / "command-line.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("command", "expected"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_the_examples_of_the_how_to_page_are_true(command: str, expected: str, tmp_path: Path) -> None:
    ended = run(command.split(), tmp_path)
    assert re.fullmatch(re.escape(expected).replace("…", ".*"), ended.out + ended.err, re.DOTALL)


def test_the_how_to_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 20


def test_the_reference_is_the_help_of_all_commands() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text("utf-8")
    assert page == reference.page(), "run make docs"

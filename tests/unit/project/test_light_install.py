"""What `pip install crossdock` can import: neither the server's packages nor modules that Windows lacks.

tests/e2e/test_light_install.py installs the wheel. These tests hide the packages instead, which takes a second.
"""

import subprocess
import sys
from typing import Final

import pytest

from crossdock.cli.catalog import COMMANDS, Entry, Noun
from crossdock.cli.extras import EXTRAS, UNIX_ONLY
from tests.support.patience import PATIENCE_S

PACKAGES: Final = tuple(sorted(set().union(*EXTRAS.values())))

#: Modules of the public API and of the command line.
LIGHT: Final = (
    "crossdock",
    "crossdock.app.app",
    "crossdock.cli.main",
    "crossdock.client.aio",
    "crossdock.client.client",
    "crossdock.testing.jobs",
    "crossdock.testing.plugin",
    "crossdock.worker.child",
    "crossdock.worker.supervisor",
)

#: Commands whose code needs an extra. All others work with the light install.
NEED_EXTRAS: Final = {
    "up", "demo", "doctor", "cert", "backup", "restore", "check", "salvage", "lake status", "lake erase",
    "job replay", *(f"{noun} {verb}" for noun in ("pipeline", "report") for verb in COMMANDS[noun].verbs),  # type: ignore[union-attr]
}  # fmt: skip


def run(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def without(*modules: str) -> str:
    """The start of a program in which these modules cannot be imported."""
    return f"import sys\nsys.modules |= dict.fromkeys({modules!r})\n"


def entries() -> dict[str, Entry]:
    """All commands, by their words."""
    found: dict[str, Entry] = {}
    for name, entry in COMMANDS.items():
        if isinstance(entry, Noun):
            found |= {f"{name} {verb}": each for verb, each in entry.verbs.items()}
        else:
            found[name] = entry
    return found


LIGHT_COMMANDS: Final = sorted(
    {
        f"crossdock.cli.commands.{each.where.partition(':')[0]}"
        for name, each in entries().items()
        if name not in NEED_EXTRAS
    }
)


@pytest.mark.parametrize("module", LIGHT)
def test_a_public_module_loads_no_package_of_an_extra(module: str) -> None:
    """They are installed here, and stay unused."""
    program = f"import sys, {module}\nprint(*sorted({{each.partition('.')[0] for each in sys.modules}}))"
    ran = run(program)
    assert ran.stderr == ""
    assert set(ran.stdout.split()) & {*PACKAGES} == set()


def test_light_modules_and_commands_are_imported_on_windows() -> None:
    names = [*LIGHT, *LIGHT_COMMANDS]
    imports = "".join(f"import {each}\n" for each in names)
    ran = run(without(*PACKAGES, *UNIX_ONLY) + "import socket\ndel socket.AF_UNIX\n" + imports)
    assert (ran.returncode, ran.stderr) == (0, "")


MAIN: Final = "from crossdock.cli.main import main\nsys.exit(main())\n"


@pytest.mark.parametrize("command", sorted(NEED_EXTRAS))
def test_a_command_names_the_extra_that_it_needs(command: str) -> None:
    words = command.split() if command == "demo" else [*command.split(), "--help"]
    if command == "lake erase":  # its help needs nothing
        words = ["lake", "erase", "--jid", "J", "--data", "nowhere"]
    ran = run(without(*PACKAGES) + MAIN, *words)
    assert ran.returncode == 2
    extra = {"report": "reports", "pipeline": "pipeline"}.get(command.split()[0], "server")
    assert ran.stderr.startswith("crossdock: ")
    assert ran.stderr.endswith(f" is not installed; install it with: pip install 'crossdock[{extra}]'\n")


def test_a_command_of_the_server_names_what_windows_lacks() -> None:
    ran = run(without(*PACKAGES, *UNIX_ONLY) + MAIN, "up")
    assert ran.returncode == 2
    assert ran.stderr == "crossdock: this command needs Linux or another Unix: Python has no module resource here\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["job", "list", "--help"], ["push", "--help"]])
def test_help_needs_no_extra(words: list[str]) -> None:
    ran = run(without(*PACKAGES, *UNIX_ONLY) + MAIN, *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


def test_a_module_that_belongs_to_no_extra_is_an_error_of_the_program() -> None:
    ran = run(without("rich") + MAIN, "top", "--once")
    assert ran.returncode == 1
    assert "ModuleNotFoundError" in ran.stderr


def test_without_unix_sockets_the_remote_way_is_named() -> None:
    ran = run(without(*PACKAGES, *UNIX_ONLY) + "import socket\ndel socket.AF_UNIX\n" + MAIN, "queue", "list")
    assert ran.returncode == 1
    assert ran.stderr == "crossdock: servers do not run on this system; name one on another machine with --server\n"

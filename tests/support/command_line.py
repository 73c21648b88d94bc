"""Run the command line in real processes, as an operator does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from tests.support.patience import PATIENCE_S

#: Variables of the test run's own environment that could configure Crossdock are removed.
CLEAN: Final = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}


class Ended(NamedTuple):
    out: str
    err: str
    code: int


class Operator:
    """Runs commands in a folder. `settings` are full names and are passed in the environment."""

    patience_s = PATIENCE_S

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.environment = CLEAN | {f"CROSSDOCK_{name.upper()}": str(value) for name, value in settings.items()}
        self.environment["XDG_CACHE_HOME"] = str(folder / ".cache")

    @classmethod
    def at(cls, folder: Path, ports: Mapping[str, int]) -> Self:
        """An operator configured for the listeners of the server whose data is in that folder."""
        return cls(
            folder,
            server_data="data",
            **{f"listen_{protocol}": f"127.0.0.1:{port}" for protocol, port in ports.items()},
        )

    def run(self, *arguments: str, stdin: str = "") -> Ended:
        """Run a command. `stdin` is its standard input."""
        done = subprocess.run(
            [sys.executable, "-m", "crossdock", *arguments],
            cwd=self.folder, env=self.environment, input=stdin, capture_output=True, text=True, timeout=self.patience_s,
            check=False,
        )  # fmt: skip
        return Ended(done.stdout, done.stderr, done.returncode)

    def output(self, *arguments: str, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        ended = self.run(*arguments, stdin=stdin)
        assert ended.code == 0, ended
        return ended.out

    def json(self, *arguments: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.output(*arguments, "--json"))
        return answer

"""The operator at a server: real processes of the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from tests.support.patience import PATIENCE_S

#: The tests' own surroundings must not count.
CLEAN: Final = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}


class Ended(NamedTuple):
    out: str
    err: str
    code: int


class Operator:
    """Runs verbs in a folder. `settings` are full names, told by the environment."""

    patience_s = PATIENCE_S

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.environment = CLEAN | {f"CROSSDOCK_{name.upper()}": str(value) for name, value in settings.items()}

    @classmethod
    def at(cls, folder: Path, ports: Mapping[str, int]) -> Self:
        """At the doors of the server whose data is in that folder."""
        return cls(
            folder,
            server_data="data",
            **{f"listen_{protocol}": f"127.0.0.1:{port}" for protocol, port in ports.items()},
        )

    def run(self, *arguments: str, says: str = "") -> Ended:
        """`says` is what the operator types; then its input ends."""
        done = subprocess.run(
            [sys.executable, "-m", "crossdock", *arguments],
            cwd=self.folder, env=self.environment, input=says, capture_output=True, text=True, timeout=self.patience_s,
            check=False,
        )  # fmt: skip
        return Ended(done.stdout, done.stderr, done.returncode)

    def tell(self, *arguments: str, says: str = "") -> str:
        """What a verb prints that must succeed."""
        ended = self.run(*arguments, says=says)
        assert ended.code == 0, ended
        return ended.out

    def json(self, *arguments: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.tell(*arguments, "--json"))
        return answer

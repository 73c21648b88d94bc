"""Pipelines that are killed: `mortal.py` in a process of its own, at points that a test chooses."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.scale import LONG


class Kill(NamedTuple):
    verb: str
    how: str  #: of mortal.py
    n: int


def random_points(random: Random, many: int) -> Iterator[Kill]:
    for _ in range(many):
        verb, how = random.choice(["run", "stream"]), random.choice(["before", "after", "moment", "jvm"])
        yield Kill(verb, how, random.randrange(1, 22) if how in ("before", "after") else random.randrange(6_000))


def killed(kill: Kill, lake: Path, tables: Path, classes: Path) -> None:
    words = [kill.verb, str(lake), str(tables), kill.how, str(kill.n), str(classes)]
    child = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.mortal", *words],
        timeout=PROGRAM_PATIENCE_S, check=False, capture_output=True, text=True,
    )  # fmt: skip
    # A run may have ended before that commit or moment.
    codes = {-signal.SIGKILL, 1} if kill.how == "jvm" else {-signal.SIGKILL}
    assert child.returncode in (codes if not LONG else {0, *codes}), (kill, child.stderr)
    assert "Traceback" not in child.stderr, (kill, child.stderr)
    if child.returncode == 1:
        assert "crossdock: Spark's Java process has ended (signal 9; the system kills" in child.stderr, child.stderr

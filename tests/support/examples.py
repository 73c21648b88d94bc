"""The example applications: where they are, and how their own tests are run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import crossdock
from tests.support.command_line import CLEAN
from tests.support.patience import PROGRAM_PATIENCE_S

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def need(*packages: str) -> None:
    """Skip the test if one of these packages is missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"THE EXAMPLE WAS NOT TESTED: {', '.join(missing)} is not installed")


def environment(**more: str) -> dict[str, str]:
    """For programs of an example: this Crossdock, and nothing that is written beside the sources."""
    source = str(Path(crossdock.__file__).parents[1])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    return CLEAN | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"} | more


def run_own_tests(example: str) -> str:
    """Run the tests of an example with the plugin, as its user does. Returns the output."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "crossdock.testing.plugin", "-p", "no:cacheprovider", "-W", "error"],
        cwd=EXAMPLES / example,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        check=False,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

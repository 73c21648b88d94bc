"""One virtual environment per library, in a cache folder outside the project."""

import glob
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

#: Files that say which Python a folder was made for, and that everything was installed.
_READY: Final = ".ready"
_INSTALL_S: Final = 900.0


class NotInstalled(Exception):
    """A library cannot be measured here. The message is the reason."""


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossdock-bench"


def python_for(least: tuple[int, int]) -> str:
    """A Python of at least this version. Raises NotInstalled."""
    if sys.version_info >= least:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(least[1], least[1] + 5)]
    found = [shutil.which(name) for name in names] + sorted(glob.glob(f"{Path.home()}/.pyenv/versions/3.*/bin/python"))
    for program in filter(None, [os.environ.get("BENCH_PYTHON"), *found]):
        check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {least})"
        if subprocess.run([program, "-c", check], capture_output=True, check=False).returncode == 0:
            return program
    raise NotInstalled(f"no Python {least[0]}.{least[1]} was found; name one with BENCH_PYTHON=/path/to/python3")


def installed(cache: Path, name: str, packages: tuple[str, ...], least: tuple[int, int]) -> Path:
    """The `bin` folder of an environment with these packages, which is made if it is missing. Raises NotInstalled."""
    python = python_for(least)
    key = sha256("\n".join([python, *packages]).encode()).hexdigest()[:12]
    folder = cache / f"{name}-{key}"
    if not (folder / _READY).exists():
        print(f"installing {' '.join(packages)}", flush=True)
        try:
            _run([python, "-m", "venv", "--clear", str(folder)])
            _run(
                [
                    str(folder / "bin" / "python"),
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    *packages,
                ]
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise NotInstalled(
                f"pip could not install it: {said.strip().splitlines()[-1] if said else error}"
            ) from error
        (folder / _READY).touch()
    return folder / "bin"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S)

"""Check that a release tag, the version in the source and the changelog agree.

python -m tools.release_check v0.1.0
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def problems(tag: str, version: str, changelog: str) -> list[str]:
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and the version in src/crossdock/__init__.py is {version}")
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        found.append(f"{version} is not the version of a release; remove .dev0")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'")
    return found


def version() -> str:
    """The version in the source, read without importing it."""
    text = (ROOT / "src" / "crossdock" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Check that a release tag, the version and the changelog agree.")
    parser.add_argument("tag")
    found = problems(parser.parse_args().tag, version(), (ROOT / "CHANGELOG.md").read_text("utf-8"))
    for problem in found:
        print(problem, file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

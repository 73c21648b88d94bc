"""Writes docs/reference/settings.md from the settings: `python -m crossdock.cli.reference FILE`."""

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

from crossdock.cli.table import TABLE, Setting

_HEAD: Final = """# Settings

<!-- Written by `make docs` from src/crossdock/settings.py; a test compares the two. -->

A setting has one name, `section.key`, and three places. The first that has it wins:

1. a flag, `--section-key` (`--journal-durability everysec`); a switch is `--server-flush` or `--no-server-flush`
2. the environment, `CROSSDOCK_SECTION_KEY` (`CROSSDOCK_JOURNAL_DURABILITY=everysec`); an empty one counts as not set
3. a TOML file, `[section]` and below it `key = value`: the one named by `--config` or `CROSSDOCK_CONFIG`, or else
   `crossdock.toml` in the folder the server is started in, if it is there

`--data DIR` is short for `--server-data DIR`, and `--listen DOOR=ADDRESS` for `--listen-DOOR ADDRESS`.
Secrets have no flag: a command line is readable by everybody on the machine.
A relative path counts from the folder the server is started in.
`crossdock doctor` shows the settings in effect and where each came from.
"""


def page() -> str:
    parts = [_HEAD]
    for section, settings in groupby(TABLE.values(), lambda setting: setting.section):
        rows = "\n".join(map(_row, settings))
        parts.append(f"## {section}\n\n| Setting | Default | Allowed | What it does |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def _row(setting: Setting) -> str:
    what = f"{setting.description}. Secret: no flag" if setting.is_secret else setting.description
    return f"| `{setting.name}` | `{setting.show(setting.default)}` | {setting.allowed} | {what} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")

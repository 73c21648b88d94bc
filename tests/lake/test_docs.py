"""The reference page agrees with the schema, and its example runs."""

import re
import subprocess
import sys
from pathlib import Path

from crossdock.lake.event_rows import jobs, others, resqu
from crossdock.lake.schema import EVENTS
from tests.lake.source import ListSource, rows_of, story, write_all
from tests.support.patience import PROGRAM_PATIENCE_S

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "lake.md").read_text("utf-8")


def test_every_column_is_documented() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\S+) \| (.+) \|$", PAGE.partition("## Events")[0], re.MULTILINE)
    assert told == [
        (field.name, str(field.type).replace(" ", ""), field.metadata[b"meaning"].decode()) for field in EVENTS
    ]


def test_every_event_is_documented() -> None:
    told = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))))
    told_as = {
        "batch-callback-pushed",
        "spawned",
        "recurred",
        "resqu-batch-pushed",
        "rerouted",
        "rate-held",
        "rates-opened",
    }  #: rows are `pushed`, `moved`, `held`, `unheld`
    made = {str(kind.__struct_config__.tag) for kind in (*jobs.KINDS, *others.KINDS, *resqu.KINDS)}
    assert told >= made - told_as
    assert {row["event"] for row in rows_of(story()).values()} <= told


def test_the_example_runs(tmp_path: Path) -> None:
    write_all(tmp_path / "crossdock-data" / "lake", ListSource(story()))
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    example = example.replace(".to_pandas()", ".num_rows")  # pandas is no dependency of the lake
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=PROGRAM_PATIENCE_S,
    )
    assert int(done.stdout) > 10

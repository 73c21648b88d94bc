"""`make bench-pipeline`: CPU time from the lake to all tables, beside DuckDB doing the same work in the same run.

python -m bench.pipeline.run                      5 and 20 million events, 20 and 5,000 queues
python -m bench.pipeline.run --millions 1 --segments 3000      a trial
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.machine import describe
from bench.pipeline.generate import generate, grow
from bench.pipeline.starts import with_classes
from bench.table import Goal, show, show_goals
from crossdock.lake.table import Lake

_TIMEOUT_S: Final = 3_600
Step = dict[str, Any]


def steps(*words: str) -> list[Step]:
    """Run one measured process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.pipeline.work", *words], check=False, capture_output=True, text=True,
        timeout=_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Bench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rows: list[tuple[str, ...]] = []
        self.goals: list[Goal] = []

    def note(self, what: str, step: Step) -> Step:
        pace = step["events"] / step["wall"] / 1e3
        self.rows.append(
            (
                what,
                f"{step['cpu']:.1f}",
                f"{step['wall']:.1f}",
                f"{pace:,.0f}",
                str(step["jobs"]),
                f"{step['mib']:.0f}",
                f"{step['jvm_mib']:.0f}",
            )
        )
        print(f"  {what}: {step['cpu']:.1f} CPU-s, {step['wall']:.1f} s", flush=True)
        return step

    def whole(self, millions: float, queues: int) -> tuple[Path, float]:
        """The whole work, cold and warm. Returns the lake and the CPU time of the warm one."""
        name = f"{millions:g} M events, {queues:,} queues"
        print(f"\n{name}", flush=True)
        lake = self._folder / f"lake-{millions:g}-{queues}"
        version = generate(lake, round(millions * 1e6), queues=queues).version
        duck = self.note(f"{name}: DuckDB", steps("duck", str(lake), str(self._folder / "duck"))[0])
        cold = self.note(f"{name}: Spark, cold", self._fresh(lake, [version])[0])
        warm = self.note(f"{name}: Spark, warm", self._warm(lake, version))
        again = self.note(f"{name}: DuckDB again", steps("duck", str(lake), str(self._folder / "duck"))[0])
        best = min(duck["cpu"], again["cpu"])
        self.goals.append(Goal(f"{name}, warm, CPU of DuckDB's", warm["cpu"] / best, "most", 3.5))
        most = 7.0 if millions < 10 else 4.5
        self.goals.append(Goal(f"{name}, cold, CPU of DuckDB's", cold["cpu"] / best, "most", most))
        self.goals.append(
            Goal(f"{name}, memory of the driver without the JVM, MiB", warm["mib"], "most", 1_536, None, "{:.0f}")
        )
        return lake, warm["cpu"]

    def _fresh(self, lake: Path, versions: list[int]) -> list[Step]:
        with tempfile.TemporaryDirectory(dir=self._folder) as tables:
            return steps(str(lake), f"{tables}/tables", *map(str, versions))

    def _warm(self, lake: Path, version: int) -> Step:
        """The second of two halves would be smaller, so a small lake warms up the session first."""
        with tempfile.TemporaryDirectory(dir=self._folder) as tables:
            done = subprocess.run(
                [sys.executable, "-m", "bench.pipeline.warm", str(lake), tables, str(version)],
                check=False, capture_output=True, text=True, timeout=_TIMEOUT_S,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr)
            step: Step = json.loads(done.stdout.splitlines()[-1])
            return step

    def small(self, lake: Path) -> None:
        """A small batch after everything else: warm, cold, and nothing."""
        tables = self._folder / "kept"
        version = Lake.open(lake).version
        steps(str(lake), str(tables), str(version))
        first = grow(lake, 4)
        cold = self.note("4 more events, cold", steps(str(lake), str(tables), str(first))[0])
        nothing = self.note("nothing new", steps(str(lake), str(tables), str(first))[0])
        versions = [grow(lake, 1_000) for _ in range(6)]
        warm = self.note("1,000 more events, warm", steps(str(lake), str(tables), *map(str, versions))[-1])
        self.goals += [
            Goal("4 more events, cold, CPU s", cold["cpu"], "most", 9.0),
            Goal("1,000 more events, warm, CPU s", warm["cpu"], "most", 2.5),
            Goal("1,000 more events, warm, Spark jobs", warm["jobs"], "most", 5, None, "{:.0f}"),
            Goal("nothing new, CPU s", nothing["cpu"], "most", 1.0),
        ]

    def streamed(self, lake: Path) -> None:
        """Batches of a fifth of the lake. The last one counts, when Java has compiled the code."""
        last = Lake.open(lake).version
        cuts = [last * part // 5 for part in range(1, 6)]
        step = self.note("a fifth of it as one batch, warm", self._fresh(lake, cuts)[-1])
        pace = step["events"] / step["wall"] / 1e3
        self.goals.append(Goal("stream, k events/s", pace, "least", 200, None, "{:.0f}"))

    def lengths(self, most: int) -> None:
        """The same small batch on a short and a long lake, by segments and by days."""
        cost = {}
        many = f"{most:,} segments"
        lakes = (("1,000 segments", 1_000, 1), (many, most, 1), ("365 days", 730, 365))
        for name, segments, days in lakes:
            lake = self._folder / name.replace(" ", "-")
            version = generate(lake, segments * 50, segment=50, days=days).version
            versions = [version, *(grow(lake, 1_000) for _ in range(5))]
            cost[name] = self.note(f"1,000 more events after {name}", self._fresh(lake, versions)[-1])["cpu"]
        for name in (many, "365 days"):
            share = cost[name] / cost["1,000 segments"]
            self.goals.append(Goal(f"a batch after {name}, CPU of that after 1,000 segments", share, "most", 1.25))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[5.0, 20.0], help="sizes of the lakes [5 20]")
    parser.add_argument("--segments", type=int, default=20_000, help="segments of the longest lake [20,000]")
    parser.add_argument("--folder", type=Path, help="folder for the temporary lakes [the system's]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        describe(folder)
        bench, least = Bench(folder), min(asked.millions)
        for millions in sorted(asked.millions):
            lake, cpu = bench.whole(millions, 20)
            if millions == least:
                bench.streamed(lake)
                _, many = bench.whole(millions, 5_000)
                bench.goals.append(Goal("5,000 queues, CPU of 20 queues'", many / cpu, "most", 1.5))
                bench.small(lake)
        bench.lengths(asked.segments)
        share = with_classes()
        bench.goals.append(Goal("session and first work with an archive, CPU of plain Spark's", share, "most", 0.7))
        show("the pipeline", ("work", "CPU s", "wall s", "k events/s", "jobs", "driver MiB", "JVM MiB"), bench.rows)
        show_goals(bench.goals)


if __name__ == "__main__":
    main()

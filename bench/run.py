"""The bench: `python bench/run.py --help`. See README.md beside it for what is measured."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Run as a file, Python searches bench/ for modules; add the folder that contains the package `bench`.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from bench.backlog import backlog
from bench.compare import compare
from bench.driver import LoadFailed
from bench.idle import idle
from bench.lake import lake
from bench.machine import describe
from bench.memory import memory
from bench.process import ServerFailed
from bench.protocols import PROTOCOLS
from bench.protocols.compare import compare_protocol, compare_qless
from bench.protocols.endpoint import with_script
from bench.replies import Unexpected
from bench.resqu import compare_resqu
from bench.restart import restart
from bench.servers import Contestant, running, yardstick
from bench.sizes import QUICK, Sizes
from bench.table import show_goals
from bench.target import parse

#: Protocols that have a load. The modes run with Faktory only.
_PROTOCOLS: Final = ("faktory", *PROTOCOLS, "resqu")
_MODES: Final = {"backlog": backlog, "memory": memory, "restart": restart, "idle": idle, "lake": lake}


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run.py", description="Measure Crossdock beside other servers. Without a mode: the comparison."
    )
    parser.add_argument("--protocol", default="faktory", metavar="PROTOCOL",
                        help=f"which protocol to load: {', '.join(_PROTOCOLS)}")  # fmt: skip
    parser.add_argument("--against", action="append", default=[], metavar="faktory://[:password@]host:port",
                        help="a running server to compare with, redis:// for qless; may be repeated")  # fmt: skip
    parser.add_argument("--script", default="", metavar="NAME|HASH|FILE",
                        help="what to call at redis://: a function, a loaded script, or one to load")  # fmt: skip
    parser.add_argument("--yardstick", default=os.environ.get("CROSSDOCK_YARDSTICK", ""), metavar="FILE",
                        help="a server, run as FILE PORT sync DATABASE; default: $CROSSDOCK_YARDSTICK")  # fmt: skip
    parser.add_argument("--backlog", action="store_true", help="the phases beside 1,000 and 1,000,000 queued jobs")
    parser.add_argument("--memory", action="store_true", help="memory per queued job, over 1,000,000 pushes")
    parser.add_argument("--restart", action="store_true", help="time to accept after SIGKILL")
    parser.add_argument("--idle", action="store_true", help="memory of 5,000 idle connections")
    parser.add_argument("--lake", action="store_true", help="the lake's writer alone, and its cost beside the load")
    parser.add_argument("--all", action="store_true", help="the comparison and all of these")
    parser.add_argument("--quick", action="store_true", help="small sizes and one run: shows only that the bench works")
    parser.add_argument("--runs", type=int, help="runs of each comparison; the result is the median")
    parser.add_argument("--jobs", type=int, help="jobs in each phase")
    parser.add_argument("--many", type=int, help="instead of 1,000,000")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()),
                        help="where the servers' temporary folders go; a disk, not memory [%(default)s]")  # fmt: skip
    found = parser.parse_args(words)
    found.protocol = found.protocol or "faktory"
    if found.protocol not in _PROTOCOLS:
        parser.error(f"there is no load for the protocol {found.protocol}; choose one of: {', '.join(_PROTOCOLS)}")
    if found.protocol != "faktory" and (found.all or any(getattr(found, mode) for mode in _MODES)):
        parser.error("--all and the modes need --protocol faktory")
    if any(found.against) and found.protocol not in ("faktory", "qless"):
        parser.error("--against needs --protocol faktory or qless")
    return found


def _sizes(arguments: argparse.Namespace) -> Sizes:
    asked = {name: getattr(arguments, name) for name in ("runs", "jobs", "many") if getattr(arguments, name)}
    return msgspec.structs.replace(QUICK if arguments.quick else Sizes(), **asked)


def _others(arguments: argparse.Namespace) -> list[Contestant]:
    """Servers to compare with. `make` passes an unset variable as an empty argument."""
    targets = [parse(url) for url in arguments.against if url]
    for target in targets:
        if target.protocol != arguments.protocol:
            raise ValueError(f"--against {target.host}:{target.port} is not a server for {arguments.protocol}")
    if arguments.protocol == "qless":
        return [running(with_script(target, arguments.script)) for target in targets]
    others = [yardstick(Path(arguments.yardstick))] if arguments.yardstick else []
    return others + [running(target) for target in targets]


def main(words: Sequence[str]) -> int:
    arguments = _arguments(words)
    try:
        sizes, others = _sizes(arguments), _others(arguments)
        asked = [name for name in _MODES if arguments.all or getattr(arguments, name)]
        describe(arguments.folder)
        if arguments.protocol == "qless":
            goals = compare_qless(sizes, others, arguments.folder)
        elif arguments.protocol == "resqu":
            goals = compare_resqu(sizes, arguments.folder)
        elif arguments.protocol != "faktory":
            goals = compare_protocol(arguments.protocol, sizes, others, arguments.folder)
        else:
            goals = compare(sizes, others, arguments.folder) if arguments.all or not asked else []
        for name in asked:
            goals += _MODES[name](sizes, arguments.folder)
        if arguments.quick:
            print("\nnote: --quick shows that the bench works; its figures are not reliable")
        show_goals(goals)
    except (LoadFailed, ServerFailed, Unexpected, OSError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

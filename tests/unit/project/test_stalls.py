"""The tests' own clock: what a process waits for counts, what it was kept from does not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
from tests.support.stalls import Stalls
with Stalls() as stalls:
    print(flush=True)
    input()
print(stalls.elapsed, stalls.lost)
"""


@pytest.mark.parametrize("stops", [True, False])
def test_a_process_that_stands_still(stops: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdin=-1, stdout=-1, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        if stops:
            os.kill(child.pid, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(0.5)
        waited = time.monotonic() - began
        if stops:
            os.kill(child.pid, signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        elapsed, lost = map(float, child.stdout.readline().split())
    assert lost >= waited - 0.05 if stops else elapsed + lost >= waited

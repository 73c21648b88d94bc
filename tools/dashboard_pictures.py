"""Make the pictures of the dashboard for the README and the docs, from `crossdock demo`.

    python -m tools.dashboard_pictures [--seconds N]

The script starts the demo, lets it run for some minutes so that the charts have a past, and saves pages as PNG in
docs/images/. It needs Debian's Chromium.
"""

import argparse
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

IMAGES: Final = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM: Final = "/usr/bin/chromium"

#: The name of each picture, its page, colour scheme and height. The page of a dead job is found on the page of all.
_PICTURES: Final = (
    ("dashboard-overview", "", "light", 860),
    ("dashboard-queue", "queues/payments", "dark", 860),
    ("dashboard-failures", "failures", "light", 560),
)
_JOB: Final = "dashboard-job"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="how long the demo runs before the first picture")
    seconds = parser.parse_args().seconds
    command = [sys.executable, "-m", "crossdock", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            url = _url(demo)
            time.sleep(seconds)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                _take(browser, url)
                browser.close()
        finally:
            demo.send_signal(signal.SIGINT)


def _url(demo: "subprocess.Popen[str]") -> str:
    for line in demo.stdout or ():
        found = re.search(r"http://\S+", line)
        if found:
            return found[0]
    raise SystemExit("the demo printed no address")


def _take(browser: Browser, url: str) -> None:
    for name, path, scheme, height in _PICTURES:
        page = browser.new_page(
            viewport={"width": 1280, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        page.goto(url + path)
        page.wait_for_timeout(2_500)  # the charts have their first live point
        page.screenshot(path=IMAGES / f"{name}.png")
        page.close()
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}dead")
    page.click("tbody a >> nth=0")
    page.wait_for_timeout(2_500)  # the history has been read
    page.screenshot(path=IMAGES / f"{_JOB}.png")
    page.close()


if __name__ == "__main__":
    main()

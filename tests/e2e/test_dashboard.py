"""The dashboard in Debian's Chromium: every page and main action against a server with jobs of several protocols.

Screenshots of each page in light, dark and at phone width go to the folder in CROSSDOCK_SCREENSHOTS, if it is set.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.qless import QlessClient
from tests.support.browser import Tab, screenshot
from tests.support.faktory_client import Client
from tests.support.server import Server

pytestmark = pytest.mark.clients

AXE: Final = "axe-core@4.14.0"
INSTALL_S: Final = 120

HOSTILE: Final = "\"'><img src=x onerror=alert(1)>"

PAGES: Final = {
    "overview": "/",
    "jobs": "/jobs",
    "bad-filter": "/jobs?filter=stat:dead",
    "retries": "/retries",
    "scheduled": "/scheduled",
    "dead": "/dead",
    "job": "/jobs/1",
    "graph": "/jobs/child",
    "queues": "/queues",
    "queue": "/queues/mail",
    "workers": "/workers",
    "failures": "/failures",
    "batches": "/batches",
    "schedules": "/schedules",
    "throttles": "/throttles",
    "protocols": "/protocols",
    "history": "/history",
    "server": "/server",
    "audit": "/audit",
    "question": "/confirm?do=delete&filter=state:dead",
}


def axe_source() -> str:
    """The script of axe-core, installed once, beside the Python packages."""
    if shutil.which("npm") is None:
        pytest.skip("ACCESSIBILITY OF THE DASHBOARD WAS NOT TESTED: npm is missing")
    folder = Path(sys.prefix) / "node"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        folder.mkdir(exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), AXE]
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S)
    return script.read_text("utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("dashboard")
    running = Server(data, {"lake.segment_s": 1}, protocols=("faktory", "redis", "http"))
    with running, running.client(wid="worker-one") as client:
        fill(running, client)
        yield running


def fill(server: Server, client: Client) -> None:
    """Job 1 waits, 2 to 4 are dead, the others are in most other states."""
    client.push("mail-0001", queue="mail", jobtype="Welcome", args=[HOSTILE])
    for number in range(3):
        client.push(f"dead-000{number}", queue="pay", jobtype="Charge", args=[number], retry=-1)
        client.fetch("pay")
        client.call(
            "FAIL", {"jid": f"dead-000{number}", "errtype": "Timeout", "message": f"gateway {number} timed out"}
        )
    client.push("retry-0001", queue="pay", jobtype="Charge", args=[1])
    client.fetch("pay")
    client.call("FAIL", {"jid": "retry-0001", "errtype": HOSTILE, "message": HOSTILE})
    client.push("later-0001", queue="mail", jobtype="Digest", args=[], at="2027-01-01T00:00:00Z")
    for number in range(60):
        client.push(f"bulk-{number:04}", queue="bulk", jobtype="Sync", args=[number])
    client.push("leased-0001", queue="video", jobtype="Transcode", args=[])
    client.fetch("video")
    with QlessClient("127.0.0.1", server.ports["redis"]) as qless:
        qless.put(HOSTILE, HOSTILE, HOSTILE, b"{}", tags=[HOSTILE])
        qless.put("index", "child", "Index", b"{}", depends=[HOSTILE])


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("light", 1_280, "light"), ("dark", 1_280, "dark"), ("narrow", 1_100, "light"), ("phone", 390, "light")],
)
def test_every_page_fits_and_runs_no_script_of_a_job(
    browser: Any, server: Server, name: str, width: int, scheme: str
) -> None:
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    with Tab(browser, server, **options) as tab:
        for title, path in PAGES.items():
            page = tab.open(path)
            excess = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert excess <= 0, f"{path} scrolls sideways by {excess} px"
            if width >= 1_100:
                cut = "[...document.querySelectorAll('.table')].some(e => e.scrollWidth > e.clientWidth)"
                assert not page.evaluate(cut), f"a table on {path} scrolls sideways"
            assert page.locator("img").count() == 0
            screenshot(page, f"{title}-{name}")
        assert tab.problems == []


@pytest.mark.parametrize(("scheme", "names"), [("light", tuple(PAGES)), ("dark", ("overview", "dead", "queue"))])
def test_axe_finds_nothing_serious(browser: Any, server: Server, scheme: str, names: tuple[str, ...]) -> None:
    axe = axe_source()
    with Tab(browser, server, color_scheme=scheme) as tab:
        for name in names:
            page = tab.open(PAGES[name])
            page.evaluate(axe)
            found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")["violations"]
            serious = [
                (each["id"], each["nodes"][0]["html"][:200])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], name


def test_numbers_and_lists_update_without_reloading(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/queues")
        page.wait_for_selector(".live[data-state=on]")
        page.evaluate("window.kept = true")
        before = int(page.locator(".side [data-live=jobs]").text_content())
        with server.client() as client:
            client.push("fresh-0001", queue="fresh", jobtype="Hello", args=[])
        page.wait_for_selector(f".side [data-live=jobs]:text-is('{before + 1}')")
        page.wait_for_selector("a[href='/queues/fresh']")
        assert page.evaluate("window.kept")
        assert tab.problems == []


def test_the_lamp_says_connecting_until_the_first_event_and_nothing_shifts(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        tab.page.route("**/live", lambda route: None)  # never answered
        page = tab.open("/queues")
        place = page.locator(".live").bounding_box()
        assert page.locator(".live span").text_content() == "connecting"
        page.unroute("**/live")
        page.reload()
        page.wait_for_selector(".live[data-state=on]")
        assert page.locator(".live").bounding_box() == place
        bar = page.locator(".bar").bounding_box()
        assert bar["x"] + bar["width"] == page.evaluate("document.documentElement.clientWidth")


def test_http_is_counted_among_the_protocols(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        row = tab.open("/protocols").locator("tbody tr", has_text="http").locator("td").all_text_contents()
        assert row[0] == "http" and int(row[2]) >= 1 and int(row[3].replace("\u202f", "")) >= 1


def test_a_graph_links_to_the_jobs_that_a_job_waits_for(browser: Any, server: Server) -> None:
    with Tab(browser, server, java_script_enabled=False) as tab:
        page = tab.open("/jobs/child")
        assert page.locator("#graph a[aria-current] title").text_content().startswith("Index, ")
        page.click("#graph a:not([aria-current])")
        assert page.locator("h1").text_content() == HOSTILE


def test_times_are_local_with_utc_on_hover(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        due = tab.open("/scheduled").locator("tbody time").first
        assert "09:00" in due.text_content()
        assert due.get_attribute("title") == "2027-01-01 00:00:00 UTC"


def test_the_keyboard_searches_moves_and_explains(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/jobs")
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()
        page.keyboard.press("Escape")
        page.locator("#help").wait_for(state="hidden")  # keys belong to the help until it is closed
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        first = page.locator("tbody tr").first
        assert "at" in first.get_attribute("class").split()
        page.keyboard.press("/")
        page.keyboard.type("mail-0001")
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs/1")
        assert page.locator("h1").text_content() == "Welcome"


def test_the_theme_can_be_switched_and_is_kept(browser: Any, server: Server) -> None:
    with Tab(browser, server, color_scheme="light") as tab:
        page = tab.open("/")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("[data-theme-toggle]")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.open("/jobs")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark != light


def test_pages_can_be_read_without_javascript(browser: Any, server: Server) -> None:
    with Tab(browser, server, java_script_enabled=False) as tab:
        page = tab.open("/")
        assert page.locator(".tile").count() == 6
        page.click("nav >> text=Jobs")
        page.click("tbody tr a >> nth=0")
        assert page.locator("h2", has_text="Timeline").is_visible()
        assert "UTC" in page.locator("time").first.text_content()
        page.click("text=Load every transition and attempt")
        page.wait_for_selector("#history-body")


def test_a_queue_is_paused_with_a_reason_and_its_job_says_so(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/queues/mail")
        page.fill("[name=reason]", "deploy of mail")
        page.click("text=Pause this queue")
        page.wait_for_selector(".note-box.warn >> text=deploy of mail")
        assert "paused" in tab.open("/jobs/1").locator("#why").text_content()
        assert "In paused queues" in tab.open("/").locator("main").text_content()
        page = tab.open("/queues/mail")
        page.click("text=Resume")
        page.wait_for_selector("text=Queue resumed.")


def test_selected_jobs_are_deleted_after_the_count_is_confirmed(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/jobs?filter=queue:bulk")
        for box in page.locator("input[name=id]").all()[:3]:
            box.check()
        assert page.locator("[data-ticked]").text_content() == "3 selected"
        page.click("button:has-text('Delete')")
        assert page.locator("h1").text_content() == "Delete 3 jobs?"
        page.click("button:has-text('Delete 3 jobs')")
        page.wait_for_selector("text=3 jobs deleted.")


def test_all_jobs_of_a_filter_are_killed_and_retried(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab, AdminClient(server.data) as admin:
        left = admin.ask("count", queue="bulk", states=["ready"])["count"]
        page = tab.open("/jobs?filter=queue:bulk state:ready")
        page.click("text=All matching jobs…")
        page.click("text=Kill…")
        page.click(f"button:has-text('Kill {left} jobs')")
        page.wait_for_selector(f"text={left} jobs moved to the dead jobs.")
        page = tab.open("/confirm?do=retry&filter=queue:bulk state:dead")
        page.click(f"button:has-text('Retry {left} jobs')")
        page.wait_for_selector(f"text={left} jobs made ready.")
        assert admin.ask("count", queue="bulk", states=["ready"])["count"] == left


def test_a_dead_job_is_retried_and_shows_its_attempt_from_the_lake(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab, AdminClient(server.data) as admin:
        number = admin.job("dead-0000")["job"]["number"]
        page = tab.open(f"/jobs/{number}")
        assert "gateway 0 timed out" in page.locator("main").text_content()
        page.wait_for_selector("#history-body")
        page.click("button:has-text('Retry')")
        page.wait_for_selector("text=1 job made ready.")
        assert admin.job("dead-0000")["job"]["state"] == "ready"


def test_a_worker_is_quieted(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open("/workers")
        assert "Transcode" in page.locator("tbody").text_content()
        page.click("button:has-text('Quiet')")
        page.wait_for_selector("text=asked to take no more jobs")
        assert "quiet" in tab.open("/workers").locator("tbody .state").first.text_content()

"""Values that would run as a script or as a template if a page did not escape them, in every field, through the
protocols. Every page is opened in Chromium: no dialog, no violation of the content security policy, the literal text.
"""

import json
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.bulk import Where
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.resqu import ResquClient
from crossdock.client.workq import WorkqClient
from tests.support.browser import Tab, screenshot
from tests.support.faktory_client import Client
from tests.support.server import Server

pytestmark = pytest.mark.clients

EVIL: Final = '"><script>alert(1)</script>{{7*7}}'
AS_FILTER: Final = json.dumps(EVIL)
WORKQ_NAME: Final = "hostile"
WORKQ_FAILED: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
RESQU_BATCH: Final = f"{EVIL}:{EVIL}:{EVIL}"

#: Pages and how often at least the value is shown on them as text.
LISTS: Final = {
    "/": 1,
    "/jobs": 3,
    "/retries": 1,
    "/queues": 1,
    f"/queue?{urlencode({'name': EVIL})}": 3,
    "/workers": 1,
    "/failures": 1,
    "/batches": 1,
    "/schedules": 2,
    "/audit": 1,
    "/throttles": 1,
    f"/jobs?{urlencode({'filter': f'queue:{AS_FILTER}'})}": 2,
    f"/confirm?{urlencode({'do': 'delete', 'filter': f'kind:{AS_FILTER}'})}": 2,
    f"/search?{urlencode({'q': EVIL})}": 0,
    f"/history?{urlencode({'queue': EVIL})}": 0,
    f"/history/job?{urlencode({'jid': EVIL})}": 1,
    f"/queues/{WORKQ_NAME}": 1,
    "/scheduled": 1,
    "/dead": 0,
    "/protocols": 0,
    "/server": 0,
}

#: Pages that report an error, with their status.
ERRORS: Final = {
    f"/batch?{urlencode({'name': 'no ' + EVIL})}": 404,
    f"/queue?{urlencode({'name': 'no ' + EVIL})}": 404,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"lake.segment_s": 1, "journal.durability": "everysec"}
    listeners = ("faktory", "workq", "masenko", "redis", "http")
    running = Server(tmp_path_factory.mktemp("hostile"), settings, protocols=listeners)
    with running, running.client(wid=EVIL) as client:
        fill_qless(running)
        fill_workq(running)
        fill_masenko(running)
        fill_resqu(running)
        fill_faktory(client)
        with AdminClient(running.data) as admin:
            admin.ask("schedule-add", name=EVIL, every=3600, kind=EVIL, queue=EVIL, tags=[EVIL], payload={EVIL: EVIL})
            admin.ask("pause", names=[EVIL], reason=EVIL, by={"user": EVIL, "address": EVIL})
        yield running


def fill_qless(server: Server) -> None:
    payload = json.dumps({EVIL: EVIL}).encode()
    address = "127.0.0.1", server.ports["redis"]
    with QlessClient(*address, worker=EVIL, function="qless-throttles") as qless:
        qless.call("throttle.set", EVIL, "1")
        for name in ("failed", "leased", "ready", "blocked"):
            depends = [f"ready {EVIL}"] if name == "blocked" else []
            qless.put(EVIL, f"{name} {EVIL}", EVIL, payload, tags=[EVIL], depends=depends, throttles=[EVIL])
            if name == "failed":
                taken = qless.take([EVIL], 5)
                assert taken is not None
                qless.failed(taken, EVIL, EVIL)
            if name == "leased":
                assert qless.take([EVIL], 5) is not None


def fill_workq(server: Server) -> None:
    """A name of Workq has letters, digits and a few signs only. Payloads and results have any bytes."""
    with WorkqClient("127.0.0.1", server.ports["workq"]) as workq:
        for ident in (WORKQ_FAILED, "6ba7b810-9dad-11d1-80b4-00c04fd430c9"):
            workq.add(ident, WORKQ_NAME, EVIL.encode(), ttr_ms=60_000, ttl_ms=3_600_000)
        taken = workq.take([WORKQ_NAME], 5)
        assert taken is not None and taken.ident == WORKQ_FAILED
        workq.failed(taken, EVIL)


def fill_masenko(server: Server) -> None:
    with MasenkoClient("127.0.0.1", server.ports["masenko"]) as masenko:
        masenko.push({"queue": EVIL, "name": EVIL, "payload": {EVIL: EVIL}})


def fill_resqu(server: Server) -> None:
    """A job, one for later, and an open batch, whose jobs are held."""
    jobs = [
        {"class": EVIL, "sourceId": EVIL, "name": EVIL, "args": {EVIL: EVIL}, "id": f"{number} {EVIL}"}
        for number in range(4)
    ]
    with ResquClient(Where("127.0.0.1", server.ports["redis"])) as resqu:
        resqu.push(jobs[0])
        resqu.push_later({name: value for name, value in jobs[1].items() if name != "id"}, time.time() + 3_600)
        resqu.open_batch(RESQU_BATCH, jobs[2:], 3_600)


def fill_faktory(client: Client) -> None:
    client.push("hostile-0001", queue="evil", jobtype=EVIL, args=[EVIL], custom={EVIL: EVIL, "track": 1})
    client.fetch("evil")
    client.call("TRACK SET", {"jid": "hostile-0001", "percent": 5, "desc": EVIL})
    client.call("FAIL", {"jid": "hostile-0001", "errtype": EVIL, "message": EVIL, "backtrace": [EVIL]})
    callback = {"jid": "callback-0001", "jobtype": EVIL, "queue": "evil", "args": [EVIL]}
    batch = client.call("BATCH NEW", {"description": EVIL, "success": callback}).decode()
    client.push("hostile-0002", queue="evil", jobtype=EVIL, args=[], custom={"bid": batch})
    client.call(f"BATCH COMMIT {batch}")


def shown(page: Any) -> int:
    """How often the value stands on the page as text, in elements that are open or closed."""
    text: str = page.locator("main").evaluate("element => element.textContent")
    assert "</script>49" not in text
    return text.count(EVIL)


def test_every_list_shows_hostile_values_as_text(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        for path, least in LISTS.items():
            page = tab.open(path)
            assert shown(page) >= least, path
            assert page.locator("main script").count() == 0, path
            assert tab.problems == [], path
        screenshot(tab.open("/jobs"), "hostile-jobs")
        screenshot(tab.open("/"), "hostile-overview")


def test_every_job_and_batch_shows_hostile_values_as_text(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab, AdminClient(server.data) as admin:
        jobs = admin.ask("jobs")["jobs"]
        assert {"failed", "leased", "ready", "blocked", "retrying", "scheduled", "held"} <= {
            job["state"] for job in jobs
        }
        origins = {admin.ask("job", id=job["number"])["job"]["origin"] for job in jobs}
        assert origins == {"faktory", "workq", "masenko", "qless", "resqu"}
        for job in jobs:
            page = tab.open(f"/jobs/{job['number']}")
            page.wait_for_selector("#history-body")
            assert shown(page) >= 1, job["jid"]
            assert page.locator("h1").text_content() == (WORKQ_NAME if job["queue"] == WORKQ_NAME else EVIL)
            assert tab.problems == [], job["jid"]
        retrying = next(job["number"] for job in jobs if job["state"] == "retrying")
        page = tab.open(f"/jobs/{retrying}")
        assert shown(page) >= 6, "kind, error group, message, backtrace, payload, custom fields, progress"
        blocked = next(job["number"] for job in jobs if job["state"] == "blocked")
        page = tab.open(f"/jobs/{blocked}")
        screenshot(page, "hostile-job")
        assert page.locator("#graph a").count() == 2
        (faktory,) = (batch for batch in admin.ask("batches")["batches"] if batch["protocol"] == "faktory")
        page = tab.open(f"/batch?{urlencode({'name': RESQU_BATCH})}")
        assert shown(page) >= 3 and page.locator("main script").count() == 0
        page = tab.open(f"/batches/{faktory['batch']}")
        assert shown(page) >= 2 and page.locator("#graph a").count() == 2
        assert tab.problems == []


def test_errors_show_hostile_values_as_text(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        page = tab.open(f"/jobs?{urlencode({'filter': f'stat:{EVIL}'})}")
        assert page.locator("input.filter").input_value() == f"stat:{EVIL}"
        for path, status in ERRORS.items():
            reply = tab.page.goto(path, wait_until="load")
            assert reply.status == status, path
            assert shown(tab.page) >= 1, path
        assert [each for each in tab.problems if "Failed to load resource" not in each] == []


def test_the_server_page_warns_of_a_risky_setting(browser: Any, server: Server) -> None:
    with Tab(browser, server) as tab:
        warned = tab.open("/server").locator(".note-box.warn").all_text_contents()
        assert any(text.startswith("journal.durability = everysec: a power cut can lose") for text in warned)

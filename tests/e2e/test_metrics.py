"""`/metrics` of a real server: its content, and that documentation, dashboard and alert rules name its metrics."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.certificates import Authority
from tests.support.faktory_client import Refused
from tests.support.patience import wait_until
from tests.support.server import Server

ROOT: Final = Path(__file__).parents[2]
HOSTILE: Final = 'q"\\{}=,\N{SNOWMAN}'

_NAME: Final = re.compile(r"\bcrossdock_[a-z0-9_]+")
_ROW: Final = re.compile(r"^\| `(crossdock_\w+)` \| (\w+) \|(.*?)\| ", re.MULTILINE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One listener speaks TLS, so that the metric of the certificate is there."""
    folder = tmp_path_factory.mktemp("metrics")
    pair = Authority(folder).sign("server")
    settings = {"tls.cert": pair.cert, "tls.key": pair.key}
    protocols = ("faktory", "redis", "http", "workq")
    with Server(folder / "data", settings, protocols=protocols, tls=("workq",)) as running:
        with running.client(wid="worker") as client:
            for n in range(4):
                client.push(f"job-{n:05d}", "mail")
            client.push("job-other", "_other")
            client.fetch("mail")
            client.ack("job-00000")
            client.fetch("mail")
            client.fail("job-00001")
            with pytest.raises(Refused):
                client.call("NONSENSE")
        with redis.Redis(port=running.ports["redis"]) as qless:
            qless.fcall("qless", 0, "put", str(time.time()), "worker", HOSTILE, "job-hostile", "kind", "{}", "0")
        yield running


class Scrape:
    def __init__(self, server: Server) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.ports['http']}/metrics", timeout=30) as reply:
            self.content_type = reply.headers["content-type"]
            self.families = list(text_string_to_metric_families(reply.read().decode()))
        self.samples = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    @property
    def names(self) -> set[str]:
        return {str(name) for name, *_ in self.samples}

    def value(self, name: str, **labels: str) -> float:
        return self.samples[f"crossdock_{name}", *sorted(labels.items())]


@pytest.fixture(scope="module")
def scrape(server: Server) -> Scrape:
    found: list[Scrape] = []

    def ready() -> bool:
        """The counters follow the replies, and the web process starts after the server."""
        found[:] = [Scrape(server)]
        return found[0].value("jobs_retried_total", queue="mail") == 1

    wait_until(ready, "the figures of all commands")
    return found[0]


def test_the_endpoint_counts_jobs_by_queue_and_state(scrape: Scrape) -> None:
    assert scrape.content_type.startswith("text/plain; version=")
    assert scrape.value("jobs", queue="mail", state="ready") == 2
    assert scrape.value("jobs", queue="mail", state="retrying") == 1
    assert scrape.value("jobs", queue=HOSTILE, state="ready") == 1
    assert scrape.value("jobs_pushed_total", queue="mail") == 4
    assert scrape.value("jobs_processed_total", queue="mail") == 2
    assert scrape.value("jobs_failed_total", queue="mail") == 1
    assert scrape.value("job_wait_seconds_count", queue="mail") == 2
    assert scrape.value("job_run_seconds_bucket", queue="mail", le="+Inf") == 2
    assert scrape.value("command_errors_total", protocol="faktory") == 1
    assert scrape.value("connections", protocol="redis") == 0
    assert scrape.value("journal_sync_seconds_count") > 0
    assert scrape.value("commands_total", protocol="http") >= 1
    assert scrape.value("connections", protocol="http") >= 1
    assert scrape.value("command_errors_total", protocol="http") == 0


def test_a_queue_named_like_the_rest_makes_no_second_series(scrape: Scrape) -> None:
    assert scrape.value("jobs", queue="_other", state="ready") == 1
    assert scrape.value("jobs_pushed_total", queue="_other") == 1
    count = sum(len(family.samples) for family in scrape.families)
    assert count == len(scrape.samples), "each series appears once"


def test_names_and_types_follow_the_conventions(scrape: Scrape) -> None:
    for family in scrape.families:
        assert family.name.startswith("crossdock_")
        assert family.documentation.endswith(".")
        names = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert names == {f"{family.name}_total"}
        elif family.type == "histogram":
            assert names == {f"{family.name}{part}" for part in ("_bucket", "_sum", "_count")}


def _labels(family: Any) -> set[str]:
    return {label for sample in family.samples for label in sample.labels} - {"le"}


def test_the_reference_lists_every_metric(scrape: Scrape) -> None:
    listed = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in _ROW.findall((ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8"))
    }
    served = {
        family.name + ("_total" if family.type == "counter" else ""): (family.type, _labels(family))
        for family in scrape.families
    }
    assert listed == served


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "prometheus-alerts.yml"])
def test_operations_files_name_only_metrics_that_exist(scrape: Scrape, file: str) -> None:
    queries = list(_queries(file))
    assert len(queries) > 10
    used = {name for query in queries for name in _NAME.findall(query)}
    assert used
    assert used - scrape.names == set()


def test_every_alert_is_in_the_how_to() -> None:
    page = (ROOT / "docs" / "how-to" / "alerting.md").read_text("utf-8")
    rules = yaml.safe_load((ROOT / "ops" / "prometheus-alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in page] == []
    assert all({"summary", "description"} <= rule["annotations"].keys() for rule in rules)


def _queries(file: str) -> Iterator[str]:
    text = (ROOT / "ops" / file).read_text("utf-8")
    if file.endswith(".yml"):
        for group in yaml.safe_load(text)["groups"]:
            yield from (rule["expr"] for rule in group["rules"])
        return
    dashboard = json.loads(text)
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (each["definition"] for each in dashboard["templating"]["list"] if "definition" in each)

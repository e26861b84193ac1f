"""`strait demo` as a user types it, from up to down, with the package installed outside of any checkout. The tests are one
story, told in order."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from strait.config.home import home
from strait.demo.folder import DemoFolder
from strait.demo.parts import Parts
from strait.embedded.airflow_client import AirflowClient
from strait.embedded.ports import free_ports
from support.fixtures.waiting import eventually
from support.fixtures.wheel import Installed, install

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

Demo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def strait_home(tmp_path_factory) -> Path:
    """A home of its own that shares the jars that were downloaded before."""
    folder = tmp_path_factory.mktemp("home")
    (home() / "jars").mkdir(parents=True, exist_ok=True)
    (folder / "jars").symlink_to(home() / "jars")
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"), "airflow")


@pytest.fixture(scope="module")
def demo(installed: Installed, strait_home: Path) -> Iterator[Demo]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return installed.run("demo", *arguments, STRAIT_HOME=str(strait_home))

    yield run
    run("down")


@pytest.fixture(scope="module")
def up(demo) -> dict[str, Any]:
    """Its status in JSON, as `up` prints it at its end."""
    ports = free_ports(3)
    options = ("--airflow-port", "--source-port", "--destination-port")
    done = demo("up", "--json", *(str(word) for pair in zip(options, ports, strict=True) for word in pair))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_up_ends_with_every_part_running_and_every_topic_copied_in_both_directions(up):
    assert up["running"]
    assert all(up["parts"].values())
    copied = {(topic["link"], topic["topic"]): topic["copied_records"] for topic in up["topics"]}
    shop = {("shop", topic) for topic in ("orders", "payments", "invoices", "clicks")}
    assert set(copied) == {*shop, ("back", "shipments")}
    assert sum(copied[topic] for topic in shop) >= 90_000
    assert copied["back", "shipments"] >= 9_000


def test_nothing_waits_and_every_run_is_green(up, client):
    assert [topic["topic"] for topic in up["topics"] if topic["waiting"]] == []
    for dag in ("strait_shop", "strait_back"):
        eventually(lambda dag=dag: states(client, dag) == {"success"}, what=f"{dag}: every run is green")


@pytest.fixture(scope="module")
def client(up) -> Iterator[AirflowClient]:
    made = AirflowClient(up["airflow"]["url"], up["airflow"]["user"], up["airflow"]["password"])
    yield made
    made.close()


def states(client: AirflowClient, dag: str) -> set[str]:
    return {run["state"] for run in client.runs(dag)}


def test_the_group_that_consumes_on_the_source_is_kept_ready_on_the_destination(demo, up):
    def in_sync() -> bool:
        status = json.loads(demo("status", "--json").stdout)
        return {"link": "shop", "groups": 1, "in_sync": 1} in status["consumer_groups"]

    eventually(in_sync, what="the group is in sync")
    client = AdminClient({"bootstrap.servers": up["clusters"]["destination"]})
    (asked,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")]).values()
    offsets = {(at.topic, at.partition): at.offset for at in asked.result(20).topic_partitions}
    assert {topic for topic, _ in offsets} == {"orders", "payments"}
    assert min(offsets.values()) > 0


def test_status_names_addresses_that_answer_and_a_login_that_works(demo, up):
    done = demo("status", "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["links"] == ["shop", "back"]
    for cluster in ("source", "destination"):
        client = AdminClient({"bootstrap.servers": status["clusters"][cluster]})
        assert "orders" in client.list_topics(timeout=20).topics
    login = {"username": status["airflow"]["user"], "password": status["airflow"]["password"]}
    assert httpx.post(f"{status['airflow']['url']}/auth/token", json=login, trust_env=False).status_code == 201
    assert httpx.get(status["page"], trust_env=False).status_code == 200


def test_the_ports_that_are_open_to_other_hosts_are_the_named_ones(up):
    listening = [one.laddr for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    everywhere = {address.port for address in listening if address.ip in ("0.0.0.0", "::")}  # noqa: S104
    local = {int(address.rpartition(":")[2]) for address in [*up["clusters"].values(), up["airflow"]["url"]]}
    assert set(up["airflow"]["log_ports"]) <= everywhere and not local & everywhere


def test_the_log_of_a_task_and_a_button_on_its_page_lead_to_the_link(up, client):
    address = f"{up['page']}#/link/shop"
    run = client.runs("strait_shop")[-1]["dag_run_id"]
    assert f"on the page: {address}" in client.task_log("strait_shop", run, "monitor")
    buttons = client._call("GET", f"/api/v2/dags/strait_shop/dagRuns/{run}/taskInstances/monitor/links")
    assert buttons["extra_links"] == {"Strait": address}


def test_an_invoice_that_is_rejected_is_one_red_run_and_quarantining_it_a_green_one(demo, client):
    before = {run["dag_run_id"] for run in client.runs("strait_shop")}
    assert demo("reject").returncode == 0

    def runs() -> list[dict[str, Any]]:
        return [run for run in client.runs("strait_shop") if run["dag_run_id"] not in before]

    def failed() -> dict[str, Any] | None:
        return next((run for run in runs() if run["state"] == "failed"), None)

    red = eventually(
        failed, what=lambda: f"a red run: {[(run['state'], run['note']) for run in runs()]}", within_seconds=240
    )
    assert "topic invoices " in red["note"] and "batch_too_large" in red["note"]
    by_hand = client.trigger("strait_shop")
    assert client.wait_for_run("strait_shop", by_hand, 180) == "success"
    assert client.run("strait_shop", by_hand)["note"].startswith("known since ")
    topics = json.loads(client._call("GET", "/api/v2/variables/strait_topics_shop")["value"])
    topics["rules"][0]["on_refused"] = "quarantine"
    client.set_variable("strait_topics_shop", json.dumps(topics))

    def over() -> dict[str, Any] | None:
        run = next(iter(runs()), None)
        return run if run and run["state"] == "success" and "known since" not in run["note"] else None

    assert "needs an operator" not in eventually(over, what="a run without it", within_seconds=240)["note"]
    assert [run["state"] for run in client.runs("strait_shop")].count("failed") == 1


def test_it_stays_below_four_gigabytes(up):
    assert up["memory_pss_bytes"] < 4 * 2**30


def test_only_its_owner_can_read_the_password(up, strait_home):
    holders = [path for path in strait_home.rglob("*") if path.is_file() and _holds(path, up["airflow"]["password"])]
    assert holders
    assert all(path.stat().st_mode & 0o077 == 0 for path in holders)


def test_a_second_up_finds_it_running(demo, up):
    done = demo("--json")
    assert done.returncode == 0, done.stderr
    assert "already" in done.stderr
    found, before = (set(status["application"]["pids"]) for status in (json.loads(done.stdout), up))
    assert found & before, "it is the same application, even if Spark has started a slot again meanwhile"


def test_logs_names_the_log_of_every_part(demo, up):
    logs = json.loads(demo("logs", "--json").stdout)["logs"]
    assert set(logs) == set(up["parts"])
    assert all(Path(path).exists() for path in logs.values())
    assert demo("logs", "nonsense").returncode == 2


def test_down_leaves_no_process_no_port_and_no_file_but_the_jars(demo, up, strait_home):
    assert demo("down").returncode == 0
    assert [path.name for path in strait_home.iterdir()] == ["jars"]
    assert not [process for process in psutil.process_iter() if _works_in(process, strait_home)]
    assert demo("status").returncode == 1


def test_a_port_in_use_is_one_clear_line(demo, strait_home):
    (port,) = free_ports(1)
    failed = demo("up", "--airflow-port", str(port), "--source-port", str(port))
    assert failed.returncode == 1
    (line,) = failed.stderr.strip().splitlines()
    assert f"--source-port: port {port}" in line


def test_down_clears_away_an_up_that_was_killed_half_way(demo, installed, strait_home):
    up = subprocess.Popen(
        [installed.strait, "demo", "up"],
        cwd=installed.folder,
        env=installed.environment | {"STRAIT_HOME": str(strait_home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    parts = Parts(DemoFolder(strait_home / "demo"))
    eventually(lambda: parts.running()["source"], what="the first part runs")
    up.kill()
    up.wait()
    assert parts.processes()
    assert demo("down").returncode == 0
    assert not [process for process in psutil.process_iter() if _works_in(process, strait_home)]
    assert [path.name for path in strait_home.iterdir()] == ["jars"]


def _holds(path: Path, password: str) -> bool:
    return password.encode() in path.read_bytes()


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in " ".join([process.cwd(), *process.cmdline()])
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False

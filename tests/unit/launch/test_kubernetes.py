"""Kubernetes without a cluster: what is asked of it, against a small API server of our own; tests/kubernetes has a real
one."""

import base64
import http.server
import json
import textwrap
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.app_spec import AppSpec, PoolSpec, parse_spec
from strait.config.links import Spark
from strait.errors import ConfigError, LaunchError
from strait.launch.base import State
from strait.launch.kubernetes import history, names, spark_submit, templates
from strait.launch.kubernetes.driver import LOST_SECONDS, START_SECONDS, driver_of
from strait.launch.kubernetes.launcher import KubernetesLauncher, _pod_template
from strait.launch.kubernetes.properties import kubernetes_properties

SECRET = "correct horse battery"
NAME = "strait-link-default"
URL = "https://kubernetes.example:6443"
BLOCK = {
    "namespace": "strait",
    "image": "registry.example/strait:1",
    "service_account": "driver",
    "directory": "s3a://bucket/strait",
    "token_file": "/etc/token",
    "ca_file": "/etc/ca.pem",
}


def spark_of(**changes: Any) -> Spark:
    conf = changes.pop("conf", {})
    return Spark.model_validate({"master": f"k8s://{URL}", "kubernetes": BLOCK | changes, "conf": conf})


@pytest.fixture
def spec() -> AppSpec:
    ledger, checkpoint = spark_of().directories("/home/ledger", "/home/checkpoint")
    return AppSpec(
        link="link",
        group="default",
        source_name="a",
        source={"bootstrap.servers": "a:9092"},
        destination_name="b",
        destination={"bootstrap.servers": "b:9092", "sasl.password": SECRET},
        slots=3,
        slot_memory_bytes=128 << 20,
        ledger_seconds=300,
        ledger_dir=ledger,
        checkpoint_dir=checkpoint,
    )


def test_a_pools_secret_holds_all_of_its_members(spec: AppSpec) -> None:
    other = spec.model_copy(update={"link": "other"})
    pool = PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/tmp/x", members=(spec, other))  # noqa: S108
    secret = templates.secret_of(pool, "name", {}, {})
    assert parse_spec(templates.spec_text(secret), "it") == pool
    properties = kubernetes_properties("strait-pool-main", pool, spark_of(), spark_of().kubernetes, "d.yaml", "e.yaml")
    assert SECRET not in str(properties)


class TestSettings:
    def test_drivers_always_run_in_the_cluster(self) -> None:
        assert spark_of().deploy_mode == "cluster"
        assert spark_of().directories("/home/ledger", "/home/x") == ("s3a://bucket/strait/ledger", "/tmp/strait")  # noqa: S108

    @pytest.mark.parametrize(
        ("block", "problem"),
        [
            ({"master": f"k8s://{URL}"}, "kubernetes: needed"),
            ({"master": "local", "kubernetes": BLOCK}, "only with a `master`"),
            ({"master": "k8s://http://a:80", "kubernetes": BLOCK}, "pattern"),
            ({"deploy_mode": "client"}, "deploy_mode: client is not supported"),
            ({"package": "/a.tar.gz"}, "package: not in Kubernetes"),
            ({"conf": {"spark.kubernetes.namespace": "other"}}, "spark.kubernetes.namespace: set by Strait"),
            ({"conf": {"spark.kubernetes.authenticate.submission.oauthToken": "x"}}, "set by Strait"),
            ({"kubernetes": BLOCK | {"ca_file": None}}, "token_file and ca_file, or kubeconfig and context"),
            ({"kubernetes": BLOCK | {"context": "a"}}, "not both"),
            ({"kubernetes": BLOCK | {"namespace": "a/b"}}, "pattern"),
            ({"kubernetes": BLOCK | {"directory": "relative"}}, "pattern"),
            ({"kubernetes": BLOCK | {"nonsense": 1}}, "nonsense"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, block: dict[str, Any], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            Spark.model_validate(
                {"master": f"k8s://{URL}", "kubernetes": BLOCK} | block if "master" not in block else block
            )


class TestNames:
    def test_a_name_that_kubernetes_allows_stays(self) -> None:
        assert names.resource_name("strait-a-to-b-default") == "strait-a-to-b-default"

    def test_others_are_allowed_and_differ(self) -> None:
        given = ["strait-A-b", "strait-a_b", "strait-a-b.standby", "strait-a-b-", "x" * 41, "x" * 42, "Ä", "-"]
        made = [names.resource_name(one) for one in given]
        assert len(set(made)) == len(made)
        assert all(names.resource_name(one) == one for one in made)


class TestTemplates:
    def test_the_spec_is_a_file_for_its_owner_and_nothing_else_has_it(self, spec: AppSpec) -> None:
        labels = names.labels(NAME, "link", "default", "7")
        driver = templates.driver_template({}, labels, {}, "secret", "MARK")
        executor = templates.executor_template({}, labels, {}, "secret")
        for pod in (driver, executor):
            assert {"name": "strait-spec", "secret": {"secretName": "secret", "defaultMode": 0o400}} in pod["spec"][
                "volumes"
            ]
            mounts = pod["spec"]["containers"][0]["volumeMounts"]
            assert {"name": "strait-spec", "mountPath": "/etc/strait", "readOnly": True} in mounts
            assert pod["spec"]["securityContext"]["runAsNonRoot"] and pod["spec"]["securityContext"]["fsGroup"]
        assert executor["spec"]["automountServiceAccountToken"] is False
        given = spark_of(conf={"spark.kubernetes.driver.request.cores": "100m"})
        properties = kubernetes_properties(NAME, spec, given, given.kubernetes, "/d", "/e")
        assert SECRET not in yaml.safe_dump_all([driver, executor]) + str(properties)
        assert properties["spark.executor.instances"] == "3"
        assert properties["spark.kubernetes.driver.request.cores"] == "100m"
        secret = templates.secret_of(spec, "secret", labels, {})
        assert AppSpec.parse(templates.spec_text(secret), "here") == spec

    def test_the_links_own_template_is_kept(self) -> None:
        given = {
            "metadata": {"labels": {"team": "x"}},
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "securityContext": {"fsGroup": 7},
                "volumes": [{"name": "own"}],
                "containers": [
                    {"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}], "env": [{"name": "A"}]}
                ],
            },
        }
        before = json.dumps(given)
        pod = templates.driver_template(given, {"strait-link": "l"}, {}, "secret", "MARK")
        assert json.dumps(given) == before
        assert pod["metadata"]["labels"] == {"team": "x", "strait-link": "l"}
        assert pod["spec"]["nodeSelector"] == {"disk": "ssd"} and pod["spec"]["securityContext"]["fsGroup"] == 7
        assert [one["name"] for one in pod["spec"]["volumes"]] == ["own", "strait-spec", "strait-run"]
        assert [one["name"] for one in pod["spec"]["containers"][0]["env"]] == ["A", "MARK"]

    def test_executors_know_the_zone_of_their_node_unless_they_are_told_another_one(self) -> None:
        (zone,) = templates.executor_template({}, {}, {}, "secret")["spec"]["containers"][0]["env"]
        assert zone["name"] == "STRAIT_RACK"
        assert zone["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['topology.kubernetes.io/zone']"
        own = {"name": "STRAIT_RACK", "value": "euc1-az1"}
        given = {"spec": {"containers": [{"name": "main", "env": [own]}]}}
        assert templates.executor_template(given, {}, {}, "secret")["spec"]["containers"][0]["env"] == [own]


def pod(phase: str, **status: Any) -> dict[str, Any]:
    labels = names.labels(NAME, "link", "default", "1000") | {"spark-role": "driver"}
    metadata = {"name": NAME, "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    return {"metadata": metadata | {"annotations": {names.APPLICATION: NAME}}, "status": {"phase": phase} | status}


def container(**state: Any) -> dict[str, Any]:
    return {
        "containerStatuses": [
            {"name": "spark", "ready": "running" in state and state.pop("ready", False), "state": state}
        ]
    }


CREATED_MS = 1_767_225_600_000


class TestDriver:
    @pytest.mark.parametrize(
        ("seen", "state", "exit_code", "reason"),
        [
            (pod("Pending"), State.SUBMITTED, None, ""),
            (pod("Running", **container(running={})), State.SUBMITTED, None, ""),
            (pod("Running", **container(running={}, ready=True)), State.RUNNING, None, ""),
            (pod("Succeeded", **container(terminated={"exitCode": 0, "reason": "Completed"})), State.FINISHED, 0, ""),
            (pod("Failed", **container(terminated={"exitCode": 3, "reason": "Error"})), State.DEAD, 3, ""),
            (
                pod("Failed", **container(terminated={"exitCode": 137, "reason": "OOMKilled"})),
                State.DEAD,
                137,
                "OOMKilled",
            ),
            (pod("Failed", reason="Evicted", message="disk"), State.DEAD, None, "Evicted: disk"),
            (
                pod("Pending", **container(waiting={"reason": "ImagePullBackOff", "message": "no such image"})),
                State.SUBMITTED,
                None,
                "ImagePullBackOff: no such image",
            ),
            (pod("Unknown"), State.UNKNOWN, None, ""),
        ],
    )
    def test_what_a_pod_says(self, seen: dict[str, Any], state: State, exit_code: int | None, reason: str) -> None:
        driver = driver_of(seen)
        assert (driver.state(CREATED_MS), driver.exit_code, driver.reason) == (state, exit_code, reason)

    def test_another_container_of_the_pod_speaks_for_itself(self) -> None:
        """A mesh's proxy goes on when the driver has ended, and the kubelet may name it first."""
        template = templates.driver_template(
            {"spec": {"containers": [{"name": "x"}, {"name": "proxy"}]}}, {}, {}, "s", "M"
        )
        others = [{"name": "proxy", "ready": True, "state": {"running": {}}}]
        for ended, ready, state in (({"exitCode": 1}, False, State.DEAD), ({"exitCode": 0}, False, State.FINISHED)):
            statuses = [*others, {"name": "x", "ready": ready, "state": {"terminated": ended}}]
            driver = driver_of(pod("Running", containerStatuses=statuses) | {"spec": template["spec"]})
            assert (driver.state(CREATED_MS), driver.exit_code, driver.container) == (state, ended["exitCode"], "x")
        statuses = [*others, {"name": "x", "ready": False, "state": {"running": {}}}]
        driver = driver_of(pod("Running", containerStatuses=statuses) | {"spec": template["spec"]})
        assert driver.state(CREATED_MS) is State.SUBMITTED

    def test_one_that_never_starts_is_dead_in_the_end(self) -> None:
        driver = driver_of(pod("Pending"))
        assert driver.state(CREATED_MS + int(START_SECONDS * 1000)) is State.SUBMITTED
        assert driver.state(CREATED_MS + int(START_SECONDS * 1000) + 1) is State.DEAD

    def test_one_whose_node_does_not_remove_it_is_dead_in_the_end(self) -> None:
        """Its node is lost: it is shown as running and ready for as long as nobody removes it by force."""
        seen = pod("Running", **container(running={}, ready=True))
        seen["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:00Z"
        driver, due_ms = driver_of(seen), CREATED_MS + 600_000
        assert driver.deleting
        assert driver.state(due_ms + int(LOST_SECONDS * 1000)) is State.RUNNING
        assert driver.state(due_ms + int(LOST_SECONDS * 1000) + 1) is State.DEAD
        ended = pod("Running", **container(terminated={"exitCode": 0}))
        ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:00Z"
        assert driver_of(ended).state(due_ms + 3_600_000) is State.FINISHED


class TestHistory:
    def test_it_keeps_the_newest_once_each(self) -> None:
        known: tuple[history.Ended, ...] = ()
        for number in (3, 1, 7, 2, 5, 4, 7):
            ended = history.Ended(id=str(number), state=State.DEAD, exit_code=1, cause=f"c{number}", log="")
            known = history.together(known, ended)
        assert [one.id for one in known] == ["7", "5", "4", "3", "2"]
        assert history.parse(history.config_map(NAME, known)) == known

    @pytest.mark.parametrize("text", ["", "{", "[1]", '[{"id": "x"}]'])
    def test_what_cannot_be_read_is_forgotten(self, text: str) -> None:
        assert history.parse({"data": {"submissions": text}}) == ()


class Server:
    """Stores objects as an API server does: names are unique, uids differ, deletion may need a uid."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.refuse: dict[tuple[str, str], tuple[int, str]] = {}
        self.requests: list[str] = []
        self.log = "strait: it broke"
        self.lost: set[tuple[str, str]] = set()
        """Objects whose node is gone."""
        self.unreachable_logs = False
        handler = type("Handler", (_Handler,), {"server_": self})
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()
        self._uids = 0

    def add(self, kind: str, body: dict[str, Any]) -> bool:
        key = kind, body["metadata"]["name"]
        if key in self.objects:
            return False
        self._uids += 1
        stamp = {"uid": f"u{self._uids}", "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self.objects[key] = body | {"metadata": body["metadata"] | stamp}
        return True

    def names(self, kind: str) -> list[str]:
        return [name for of, name in self.objects if of == kind]

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)


class _Handler(http.server.BaseHTTPRequestHandler):
    server_: Server

    def _any(self) -> None:
        server, parts = self.server_, urllib.parse.urlparse(self.path)
        *_, kind, name = ["", *parts.path.rstrip("/").split("/")[parts.path.split("/").index("strait") + 1 :], ""][:3]
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        server.requests.append(f"{self.command} {kind} {name}".strip())
        if refused := server.refuse.get((self.command, kind)):
            return self._answer(refused[0], {"message": refused[1]})
        if parts.path.endswith("/log") and server.unreachable_logs:
            return self._answer(500, {"message": "dial tcp: no route to host"})
        if parts.path.endswith("/log"):
            return self._answer(200, server.log)
        return self._answer(*self._do(kind, name, body, urllib.parse.parse_qs(parts.query)))

    def _do(self, kind: str, name: str, body: Any, query: dict[str, list[str]]) -> tuple[int, Any]:
        server, key = self.server_, (kind, name)
        if not name and self.command == "GET":
            wanted = dict(pair.split("=") for pair in query.get("labelSelector", [""])[0].split(",") if pair)
            found = [one for (of, _), one in server.objects.items() if of == kind]
            return 200, {"items": [one for one in found if wanted.items() <= one["metadata"].get("labels", {}).items()]}
        if not name:
            return (201, body) if server.add(kind, body) else (409, {"message": "already exists"})
        if key not in server.objects:
            return 404, {"message": "not found"}
        if self.command == "DELETE" and key in server.lost and body.get("gracePeriodSeconds") != 0:
            server.objects[key]["metadata"]["deletionTimestamp"] = (
                "2026-01-01T00:00:00Z"  # its kubelet does not hear of it
            )
            return 200, server.objects[key]
        if self.command == "DELETE":
            uid = (body.get("preconditions") or {}).get("uid")
            if uid not in (None, server.objects[key]["metadata"]["uid"]):
                return 409, {"message": "another uid"}
            return 200, server.objects.pop(key)
        if self.command == "PATCH":
            server.objects[key]["metadata"] |= body["metadata"]
        if self.command == "PUT":
            server.objects[key] = body
        return 200, server.objects[key]

    def _answer(self, status: int, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def launcher(server: Server, spec: AppSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KubernetesLauncher:
    """Its spark-submit makes what Spark's would, in the same order, and fails where the pod's name is taken."""
    (tmp_path / "token").write_text("token\n")
    (tmp_path / "ca").write_text("")
    spec.write(tmp_path / "spec.json")
    script = tmp_path / "spark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(textwrap.dedent(_SPARK_SUBMIT).format(server=server.url))
    script.chmod(0o755)
    tools = spark_submit.Tools(script, Path("/usr/bin/java"))
    monkeypatch.setattr("strait.launch.kubernetes.spark_submit.find", lambda: tools)
    spark = spark_of(token_file=str(tmp_path / "token"), ca_file=str(tmp_path / "ca"))
    spark = spark.model_copy(update={"master": f"k8s://{server.url}"})
    assert spark.kubernetes is not None
    return KubernetesLauncher(spark, spark.kubernetes, tmp_path / "applications")


_SPARK_SUBMIT = """\
    #!/usr/bin/env python3
    import json, sys, urllib.error, urllib.request, yaml
    lines = open(sys.argv[sys.argv.index("--properties-file") + 1]).read().replace("\\\\", "").splitlines()
    given = dict(line.split("=", 1) for line in lines)

    def make(kind, body):
        url = "{server}/api/v1/namespaces/strait/" + kind
        data = json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(url, data, {{"Content-Type": "application/json"}}))

    pod = yaml.safe_load(open(given["spark.kubernetes.driver.podTemplateFile"]))
    pod["metadata"]["name"] = given["spark.kubernetes.driver.pod.name"]
    pod["metadata"]["labels"]["spark-role"] = "driver"
    pod["status"] = {{"phase": "Pending"}}
    try:
        made = json.load(make("pods", pod))
    except urllib.error.HTTPError as error:
        sys.exit("Exception in thread main: " + json.load(error)["message"])
    name = pod["metadata"]["name"]
    uid = json.load(urllib.request.urlopen("{server}/api/v1/namespaces/strait/pods/" + name))["metadata"]["uid"]
    owner = [{{"kind": "Pod", "name": name, "uid": uid}}]
    for kind in ("configmaps", "services"):
        make(kind, {{"metadata": {{"name": name + "-" + kind, "ownerReferences": owner}}}})
    """


class TestLauncher:
    def test_one_driver_comes_and_is_removed_with_all_that_it_has(
        self, launcher: Any, server: Server, tmp_path: Path
    ) -> None:
        first = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        assert first.state is State.SUBMITTED
        assert launcher.submit(NAME, tmp_path / "spec.json", spark_of()).id == first.id
        secret = server.objects["secrets", f"{NAME}-{first.id}"]
        assert secret["metadata"]["ownerReferences"][0]["uid"] == server.objects["pods", NAME]["metadata"]["uid"]
        assert SECRET in base64.b64decode(secret["data"]["spec.json"]).decode()
        assert launcher.spec(first) == AppSpec.read(tmp_path / "spec.json")
        assert launcher.state(NAME) == first == launcher.list()[0]

        launcher.stop(NAME)
        assert [key for key in server.objects if not key[1].endswith("-history")] == []
        assert launcher.state(NAME).state is State.FINISHED
        assert launcher.state(NAME).id == first.id
        assert launcher.cause(launcher.state(NAME)) == "stopped on request"

    def test_a_driver_whose_node_is_lost_is_removed_by_force(
        self, launcher: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("strait.launch.kubernetes.launcher._REMOVAL_SECONDS", 0.5)
        launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        owner = {"kind": "Pod", "name": NAME, "uid": server.objects["pods", NAME]["metadata"]["uid"]}
        server.add("pods", {"metadata": {"name": "executor-1", "ownerReferences": [owner]}})
        server.lost |= {("pods", NAME), ("pods", "executor-1")}
        launcher.stop(NAME, grace_seconds=0.0)
        assert server.names("pods") == []
        assert launcher.state(NAME).state is State.FINISHED

    def test_a_driver_on_a_lost_node_is_replaced(
        self, launcher: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("strait.launch.kubernetes.launcher._REMOVAL_SECONDS", 0.5)
        first = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        lost = server.objects["pods", NAME]
        lost["status"] = pod("Running", **container(running={}, ready=True))["status"]
        lost["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        server.lost.add(("pods", NAME))
        server.unreachable_logs = True
        found = launcher.state(NAME)
        assert (found.id, found.state) == (first.id, State.DEAD)
        assert launcher.cause(found) == "its node has not removed its pod since 2026-01-01 00:00:00 UTC"
        second = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        assert second.id != first.id
        newest, before = launcher.history(NAME)
        assert (newest.id, before.id, before.state) == (second.id, first.id, State.DEAD)

    def test_an_old_driver_that_another_submitter_has_just_replaced_is_not_removed_as_the_old_one(
        self, launcher: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        ended = container(terminated={"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"})
        server.objects["pods", NAME]["status"] = pod("Failed", **ended)["status"]
        give_to = launcher._give_to

        def submit_meanwhile(*given: Any) -> None:
            give_to(*given)
            monkeypatch.setattr(launcher, "_give_to", give_to)
            launcher.submit(NAME, tmp_path / "spec.json", spark_of())

        monkeypatch.setattr(launcher, "_give_to", submit_meanwhile)
        (found,) = launcher.list()
        assert found.state is State.SUBMITTED and found.id != first.id
        assert server.names("pods") == [NAME]

    def test_a_dead_one_is_remembered_and_replaced(self, launcher: Any, server: Server, tmp_path: Path) -> None:
        first = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        server.objects["pods", NAME]["status"] = pod("Failed", **container(terminated={"exitCode": 1}))["status"]
        server.log = f"first\nstrait: login with {SECRET} failed\n"
        assert launcher.cause(launcher.state(NAME)) == "exit code 1: login with *** failed"
        second = launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        assert int(second.id) > int(first.id)
        assert server.names("secrets") == [f"{NAME}-{second.id}"]
        assert [(one.id, one.state) for one in launcher.history(NAME)] == [
            (second.id, State.SUBMITTED),
            (first.id, State.DEAD),
        ]
        remembered = launcher.history(NAME)[1]
        assert (remembered.exit_code, launcher.cause(remembered)) == (1, "exit code 1: login with *** failed")
        assert SECRET not in str([one for key, one in server.objects.items() if key[0] != "secrets"])

    def test_a_submitter_that_comes_second_gets_the_firsts(self, launcher: Any, server: Server, tmp_path: Path) -> None:
        """It looked before the first one's driver was there."""
        launcher._clear = lambda name, **_: server.add("pods", pod("Pending"))
        assert launcher.submit(NAME, tmp_path / "spec.json", spark_of()).id == "1000"
        assert server.names("secrets") == []

    def test_what_spark_says_is_the_error(self, launcher: Any, server: Server, tmp_path: Path) -> None:
        server.refuse["POST", "pods"] = 403, "pods is forbidden"
        with pytest.raises(LaunchError, match="exit code 1: Exception in thread main: pods is forbidden"):
            launcher.submit(NAME, tmp_path / "spec.json", spark_of())
        assert server.names("secrets") == []

    def test_what_was_cut_off_is_given_to_its_driver_or_removed(self, launcher: Any, server: Server) -> None:
        server.add("pods", pod("Pending"))
        now_ms = time.time_ns() // 1_000_000
        for number in (1000, 2000, now_ms):
            labels, told = names.labels(NAME, "link", "default", str(number)), {names.APPLICATION: NAME}
            server.add("secrets", {"metadata": {"name": f"{NAME}-{number}", "labels": labels, "annotations": told}})
        launcher.list()
        assert server.objects["secrets", f"{NAME}-1000"]["metadata"]["ownerReferences"]
        del server.objects["pods", NAME]
        launcher.list()
        assert server.names("secrets") == [f"{NAME}-{now_ms}"]  # its submitter may still be at work

    def test_what_another_submitter_just_made_stays(self, launcher: Any, server: Server) -> None:
        """Its driver comes after this one has seen none."""
        labels, told = names.labels(NAME, "link", "default", "500"), {names.APPLICATION: NAME}
        server.add("secrets", {"metadata": {"name": f"{NAME}-500", "labels": labels, "annotations": told}})
        items = launcher._api.items

        def and_then_comes(kind: str, selector: str = "") -> Any:
            if kind == "pod" and not selector and server.add("pods", pod("Pending")):
                uid = server.objects["pods", NAME]["metadata"]["uid"]
                owner = {"kind": "Pod", "name": NAME, "uid": uid}
                server.add("services", {"metadata": {"name": f"{NAME}-svc", "ownerReferences": [owner]}})
            return items(kind, selector)

        launcher._api.items = and_then_comes
        launcher.list()
        assert server.names("services") == [f"{NAME}-svc"]
        assert server.names("secrets") == []

    def test_a_server_that_does_not_answer_makes_the_state_unknown(self, launcher: Any, server: Server) -> None:
        server.refuse["GET", "pods"] = 503, "etcd has no leader"
        assert launcher.state(NAME).state is State.UNKNOWN
        assert launcher.history(NAME) == ()
        server.refuse["GET", "pods"] = 401, "Unauthorized"
        with pytest.raises(LaunchError, match=r"401 Unauthorized \(the token has expired"):
            launcher.state(NAME)

    def test_an_object_is_taken_for_another_only_if_it_was_to_be_a_certain_one(
        self, launcher: Any, server: Server
    ) -> None:
        server.add("secrets", {"metadata": {"name": "s"}})
        launcher._api.delete("secret", "s", uid="another")
        assert server.names("secrets") == ["s"]
        server.refuse["DELETE", "secrets"] = 409, "the object has been modified"
        with pytest.raises(LaunchError, match=r"deleting secret s: .* 409 the object has been modified"):
            launcher._api.delete("secret", "s")

    def test_a_renewed_token_is_used_and_a_missing_one_named(self, launcher: Any, tmp_path: Path) -> None:
        assert launcher.state(NAME) is None
        (tmp_path / "token").unlink()
        with pytest.raises(ConfigError, match=r"token cannot be read: No such file"):
            launcher.state(NAME)

    def test_a_reply_that_is_not_json_makes_the_state_unknown(
        self, launcher: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_Handler, "_do", lambda *_: (200, "<html>"))
        assert launcher.state(NAME).state is State.UNKNOWN

    @pytest.mark.parametrize("text", ["a: [", "contexts: 5"])
    def test_a_broken_kubeconfig_is_named(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "kubeconfig").write_text(text)
        given = {"token_file": None, "ca_file": None, "kubeconfig": str(tmp_path / "kubeconfig"), "context": "a"}
        spark = spark_of(**given)
        assert spark.kubernetes is not None
        with pytest.raises(ConfigError, match="kubeconfig"):
            KubernetesLauncher(spark, spark.kubernetes, tmp_path).state(NAME)


def test_a_file_mode_of_a_pod_template_is_octal_as_kubernetes_has_it(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("spec: {volumes: [{name: v, secret: {secretName: s, defaultMode: 0444}}]}")
    (volume,) = _pod_template(str(file))["spec"]["volumes"]
    assert volume["secret"]["defaultMode"] == 0o444

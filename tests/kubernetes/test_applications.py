"""Applications of real links in a real Kubernetes API server, with the rights of the how-to page alone."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from strait.config.links import Spark
from strait.errors import LaunchError
from strait.launch.applications import Submit, decide
from strait.launch.base import Application, State
from strait.launch.kubernetes import names
from strait.launch.launchers import launcher_for
from support.fixtures.waiting import eventually
from support.kubernetes.site import KubernetesSite
from support.links.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]

SECRET = "correct horse battery"


def test_it_copies_from_any_host_and_leaves_nothing_behind(link: Link, site: KubernetesSite) -> None:
    link.produce(1000)
    link.publish(slots=1)
    submitted = link.submit()
    link.until(lambda: link.copied() == 1000, "everything is copied")
    link.until_running()
    ledger = site.node.claims / "shared" / "ledger"
    files = f"link={link.name}/date=*/application=*/*.parquet"
    link.until(lambda: list(ledger.glob(files)), "the ledger has rows")
    link.until(lambda: "records copied" in link.launcher.log_tail(submitted), "the log says so")

    elsewhere = site.launcher()  # a host that has never heard of it
    assert elsewhere.state(link.name) == link.application()
    assert elsewhere.spec(submitted) == link.spec
    assert link.name in [one.name for one in elsewhere.list()]
    assert elsewhere.submit(link.name, link.spec_path, link.spark).id == submitted.id
    assert "records copied" in elsewhere.log_tail(submitted)

    _nothing_but_the_secret_has_the_password(site)
    for pod in site.names("pod"):
        file = site.node.root_of(pod) / "etc" / "strait" / "spec.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o440  # 0400, and the pod's group
        assert file.stat().st_uid == 0 and file.stat().st_gid == 50_000

    elsewhere.stop(link.name)
    assert site.left_behind(link.name) == []
    ended = link.application()
    assert (ended.id, ended.state) == (submitted.id, State.FINISHED)


def test_a_killed_driver_is_submitted_again_with_its_history(link: Link, site: KubernetesSite) -> None:
    link.produce(100)
    link.publish(slots=1)
    first = link.submit()
    link.until(lambda: link.copied() == 100, "everything is copied")
    site.node.kill(link.name)
    dead = link.until_ended()
    assert (dead.id, dead.state, dead.exit_code) == (first.id, State.DEAD, 137)
    assert "SIGKILL" in link.launcher.cause(dead)

    history = link.launcher.history(link.name)
    assert isinstance(decide(link.spec, dead, link.launcher.spec(dead), history, dead.submitted_at_ms), Submit)
    link.produce(100)
    second = link.submit()
    assert second.id != first.id
    assert site.names("secret") == {f"{link.name}-{second.id}"}
    link.until(lambda: link.copied() == 200, "what came later is copied, nothing twice")
    link.until_running()
    assert [one.id for one in link.launcher.history(link.name)] == [second.id, first.id]
    assert "SIGKILL" in link.launcher.cause(link.launcher.history(link.name)[1])


def test_of_two_submitters_one_driver_comes(link: Link, site: KubernetesSite) -> None:
    site.node.paused = True
    found: list[Application] = []
    both = [threading.Thread(target=lambda: found.append(link.submit())) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len({one.id for one in found}) == 1 and len(found) == 2
    assert site.names("secret") == {f"{link.name}-{found[0].id}"}
    assert len(site.names("service")) == 1


def test_a_driver_that_no_node_takes_is_told_and_ended(link: Link, site: KubernetesSite, monkeypatch: Any) -> None:
    site.node.paused = True
    waiting = link.submit()
    assert waiting.state is State.SUBMITTED
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes available"}
    site.core.patch_namespaced_pod_status(link.name, "strait", {"status": {"conditions": [condition]}})
    assert link.launcher.log_tail(waiting) == "Unschedulable: 0/1 nodes available"
    monkeypatch.setattr("strait.launch.kubernetes.driver.START_SECONDS", 0.0)
    dead = link.application()
    assert dead.state is State.DEAD
    assert link.launcher.cause(dead) == "Unschedulable: 0/1 nodes available"
    link.launcher.stop(link.name)
    assert site.left_behind(link.name) == []


def test_without_a_right_it_says_which(link: Link, site: KubernetesSite) -> None:
    core = site.core
    from kubernetes import client

    rights = client.RbacAuthorizationV1Api(site.plane.admin())
    role = rights.read_namespaced_role("strait-submitter", "strait")
    without = [{"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": rule.verbs} for rule in role.rules]
    without[0]["verbs"] = ["get", "list", "delete"]
    rights.patch_namespaced_role("strait-submitter", "strait", {"rules": without})
    try:
        with pytest.raises(LaunchError, match=r"cannot create resource .*pods.*lists the rights"):
            eventually(lambda: link.submit() is None, what="the right is gone")
    finally:
        rights.patch_namespaced_role("strait-submitter", "strait", {"rules": role.rules})
        eventually(lambda: core.list_namespaced_secret("strait") is not None, what="the rights are back")
    assert site.names("secret") == set()


def test_what_a_cut_off_submission_left_is_removed(link: Link, site: KubernetesSite, monkeypatch: Any) -> None:
    labels = names.labels(link.name, link.name, "default", "1")
    secret = {"metadata": {"name": "cut-off", "labels": labels, "annotations": {names.APPLICATION: link.name}}}
    site.core.create_namespaced_secret("strait", secret)
    link.launcher.list()
    assert "cut-off" not in site.names("secret")


def test_a_dead_driver_is_removed_after_an_hour(link: Link, site: KubernetesSite, monkeypatch: Any) -> None:
    link.submit(source={"bootstrap.servers": "127.0.0.1:1"})
    eventually(lambda: site.node.kill(link.name) or not link.application().state.alive, what="it is dead")
    assert link.launcher.list()[0].state is State.DEAD
    assert site.names("pod") == {link.name}
    monkeypatch.setattr("strait.launch.kubernetes.launcher.KEEP_ENDED_SECONDS", -1.0)
    assert [one.state for one in link.launcher.list() if one.name == link.name] == [State.DEAD]
    assert site.left_behind(link.name) == []


def test_it_uses_the_named_context_and_no_other(
    link: Link, site: KubernetesSite, tmp_path: Path, monkeypatch: Any
) -> None:
    """The user's own kubeconfig names a server that nobody may be sent to."""
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").write_text(_kubeconfig("https://127.0.0.1:1", site.plane.ca_file, "wrong"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KUBECONFIG", str(home / ".kube" / "config"))
    site.node.paused = True
    assert link.submit().state is State.SUBMITTED  # by token and CA
    link.launcher.stop(link.name)

    own = tmp_path / "kubeconfig"
    own.write_text(_kubeconfig(site.plane.url, site.plane.ca_file, site.token_file.read_text()))
    block = link.spark.kubernetes.model_dump() | {"token_file": None, "ca_file": None}
    block |= {"kubeconfig": str(own), "context": "right"}
    link.spark = Spark.model_validate(link.spark.model_dump() | {"kubernetes": block})
    link.launcher = launcher_for(link.spark, tmp_path)
    assert link.submit().state is State.SUBMITTED


def _kubeconfig(server: str, ca: Path, token: str) -> str:
    contexts = [
        {"name": "current", "context": {"cluster": "wrong", "user": "wrong"}},
        {"name": "right", "context": {"cluster": "right", "user": "right"}},
    ]
    clusters = [
        {"name": "right", "cluster": {"server": server, "certificate-authority": str(ca)}},
        {"name": "wrong", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": str(ca)}},
    ]
    users = [{"name": "right", "user": {"token": token}}, {"name": "wrong", "user": {"token": "wrong"}}]
    kinds = {"apiVersion": "v1", "kind": "Config", "current-context": "current"}
    return json.dumps(kinds | {"contexts": contexts, "clusters": clusters, "users": users})


def _nothing_but_the_secret_has_the_password(site: KubernetesSite) -> None:
    for kind in ("pod", "service", "config_map", "network_policy"):
        assert SECRET not in json.dumps(site.objects(kind)), kind
    events = site.core.list_namespaced_event("strait")
    assert SECRET not in str(events)
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid():
            assert not any(SECRET in word for word in said), process
    for log in site.folder.parent.glob("node/*/log"):
        assert SECRET not in log.read_text(errors="replace")

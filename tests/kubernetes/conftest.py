"""A real API server with a node that runs pods as processes of this machine, and links whose applications run there."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.control.plane import GROUP
from strait.launch.base import Launcher
from strait.launch.launchers import launcher_for
from support.kubernetes import manifests
from support.kubernetes.control_plane import ControlPlane
from support.kubernetes.manifests import NAMESPACE
from support.kubernetes.node import Node
from support.links.links import Link

SECRET = "correct horse battery"
KINDS = ("pod", "service", "config_map", "secret", "network_policy")


@dataclass
class Kubernetes:
    """What the tests see of the cluster, with every right; the launcher has the submitter's only."""

    plane: ControlPlane
    node: Node
    folder: Path

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.plane.admin())

    def spark(self, **changes: Any) -> Spark:
        """The page's minimal settings, for this cluster."""
        block = {
            "namespace": NAMESPACE,
            "image": "registry.example/strait:test",
            "service_account": "strait-driver",
            "token_file": str(self.token_file()),
            "ca_file": str(self.plane.ca_file),
        }
        # A pod of the node has this machine's network, where no kubernetes.default.svc is.
        conf = {"spark.kubernetes.driver.master": self.plane.url} | changes.pop("conf", {})
        return Spark.model_validate({"master": f"k8s://{self.plane.url}", "kubernetes": block | changes, "conf": conf})

    def token_file(self) -> Path:
        path = self.folder / "submitter.token"
        path.write_text(self.plane.token_of("strait-submitter", NAMESPACE))
        return path

    def launcher(self, **changes: Any) -> Launcher:
        return launcher_for(self.spark(**changes), Path("unused"))

    def names(self, kind: str) -> set[str]:
        """Of every object that is not Kubernetes' own."""
        return {one["metadata"]["name"] for one in self.objects(kind)} - {"kube-root-ca.crt"}

    def objects(self, kind: str) -> list[dict[str, Any]]:
        api = client.NetworkingV1Api(self.plane.admin()) if kind == "network_policy" else self.core
        listed = getattr(api, f"list_namespaced_{kind}")(NAMESPACE)
        return list(api.api_client.sanitize_for_serialization(listed)["items"])

    def left(self) -> dict[str, set[str]]:
        """What there is besides histories."""
        left = {kind: {name for name in self.names(kind) if not name.endswith("-history")} for kind in KINDS}
        return {kind: names for kind, names in left.items() if names}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """Shared by all tests: use an application of your own, and stop it."""
    assert os.geteuid() == 0 and shutil.which("go"), "needs root, for the node's overlays, and Go, for the API server"
    folder = tmp_path_factory.mktemp("kubernetes")
    plane = ControlPlane(folder / "plane")
    node = Node(plane, NAMESPACE, folder / "node", Path(sys.prefix).resolve())
    try:
        plane.start()
        manifests.apply(plane.admin())
        node.start()
        try:
            yield Kubernetes(plane, node, folder)
        finally:
            node.stop()
    finally:
        plane.stop()
    assert node.trouble == []


@pytest.fixture
def link(clusters: Any, cluster: Kubernetes, topic_name: str, tmp_path: Path) -> Iterator[Link]:
    """Its topics are there, its plan is not. Its application is ended after the test."""
    name = re.sub(r"[^a-z0-9]+", "-", topic_name)[-40:].strip("-")
    ledger = "/var/lib/strait/ledger"
    cluster.node.claims.mkdir(exist_ok=True)
    template = tmp_path / "pod.yaml"
    template.write_text(_LEDGER_ON_A_CLAIM)
    spec = AppSpec(
        link=name,
        group=GROUP,
        source_name="source",
        source=clusters.source.client_properties,
        destination_name="destination",
        destination=clusters.destination.client_properties | {"sasl.password": SECRET},
        slots=1,
        slot_memory_bytes=16 << 20,
        epoch_seconds=300,
        ledger_dir=ledger,
        checkpoint_dir="/tmp/checkpoint",  # noqa: S108  in the driver's pod
    )
    spark = cluster.spark(pod_template=str(template))
    link = Link(name, clusters.source, clusters.destination, spec, tmp_path, launcher_for(spark, tmp_path), spark)
    link.make_topics()
    yield link
    cluster.node.paused = False
    link.launcher.stop(name, grace_seconds=1.0)


_LEDGER_ON_A_CLAIM = """
spec:
  containers:
    - volumeMounts: [{name: ledger, mountPath: /var/lib/strait/ledger}]
  volumes:
    - {name: ledger, persistentVolumeClaim: {claimName: ledger}}
"""

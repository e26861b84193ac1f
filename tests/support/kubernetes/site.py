"""A Kubernetes cluster of one node where applications may run; see support.spark.sites.Site."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubernetes import client
from strait.config.links import Spark
from strait.launch.base import Launcher
from strait.launch.kubernetes.launcher import KubernetesLauncher
from strait.launch.kubernetes.names import resource_name
from support.kubernetes import manifests
from support.kubernetes.control_plane import ControlPlane
from support.kubernetes.manifests import NAMESPACE
from support.kubernetes.node import Node

KINDS = ("pod", "service", "config_map", "secret", "network_policy")
DIRECTORY = "/var/lib/strait"
"""Where pods have the volume that plays the shared file system."""

_TEMPLATE = f"""
spec:
  containers:
    - volumeMounts: [{{name: shared, mountPath: {DIRECTORY}}}]
  volumes:
    - {{name: shared, persistentVolumeClaim: {{claimName: shared}}}}
"""


class KubernetesSite:
    """A real API server with the how-to page's manifests. The launcher has the submitter's rights, `core` has all."""

    restarts = False
    found_without_directory = True

    def __init__(self, folder: Path) -> None:
        assert os.geteuid() == 0, "needs root, to lay out the pods' file systems"
        self.folder = folder / "files"
        self.folder.mkdir()
        self.token_file = folder / "submitter.token"
        self.plane = ControlPlane(folder / "plane")
        self.node = Node(self.plane, NAMESPACE, folder / "node", Path(sys.prefix).resolve())
        template = folder / "pod.yaml"
        template.write_text(_TEMPLATE)
        self.settings: dict[str, Any] = {
            "namespace": NAMESPACE,
            "image": "registry.example/strait:test",
            "service_account": "strait-driver",
            "directory": DIRECTORY,
            "token_file": str(self.token_file),
            "ca_file": str(self.plane.ca_file),
            "pod_template": str(template),
        }
        # A pod of the node has this machine's network, in which there is no kubernetes.default.svc.
        conf = {"spark.kubernetes.driver.master": self.plane.url}
        self.spark = Spark.model_validate(
            {"master": f"k8s://{self.plane.url}", "kubernetes": self.settings, "conf": conf}
        )

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.plane.admin())

    def start(self) -> None:
        self.plane.start()
        manifests.apply(self.plane.admin())
        self.token_file.write_text(self.plane.token_of("strait-submitter", NAMESPACE))
        self.node.start()

    def stop(self) -> None:
        self.node.stop()
        self.plane.stop()
        assert self.node.trouble == []

    def launcher(self, directory: str = "applications") -> Launcher:
        """What it knows is in the cluster, so every one knows all."""
        assert self.spark.kubernetes is not None
        return KubernetesLauncher(self.spark, self.spark.kubernetes, self.folder / directory)

    def kill_driver(self, name: str) -> None:
        self.node.kill(resource_name(name))

    def left_behind(self, name: str) -> Sequence[str]:
        """Every object but histories, and containers."""
        left = [f"{kind} {one}" for kind in KINDS for one in self.names(kind) if not one.endswith("-history")]
        return [*left, *(f"container {one}" for one in self.node.containers())]

    def names(self, kind: str) -> set[str]:
        """Of every object that is not Kubernetes' own."""
        return {one["metadata"]["name"] for one in self.objects(kind)} - {"kube-root-ca.crt"}

    def objects(self, kind: str) -> list[dict[str, Any]]:
        api = client.NetworkingV1Api(self.plane.admin()) if kind == "network_policy" else self.core
        listed = getattr(api, f"list_namespaced_{kind}")(NAMESPACE)
        return list(api.api_client.sanitize_for_serialization(listed)["items"])

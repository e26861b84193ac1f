"""The pods of an application and the secret with its spec, as far as Spark does not create them itself. Pure.

The spec contains secrets. It is a file in the pods that only their own user can read, and is in no argument,
environment, config map or page of Spark.
"""

import base64
import copy
from collections.abc import Mapping
from typing import Any

from strait.config.app_spec import Spec
from strait.config.racks import VARIABLE

SPEC_FOLDER = "/etc/strait"
SPEC_FILE = "spec.json"
RUN_FOLDER = "/run/strait"
"""Directory in which a driver announces by a file that its query runs; its readiness probe checks for that file."""

RUN_VOLUME = "strait-run"
_SPEC_MODE = 0o400
_READY = {"exec": {"command": ["test", "-f", f"{RUN_FOLDER}/started"]}, "periodSeconds": 5, "timeoutSeconds": 5}

_ZONE = {"fieldRef": {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}}
"""The zone of an executor's node, which Kubernetes copies to its pods' labels since 1.35; "" without that label."""

_GROUP = 50_000
"""The group that the kubelet assigns to the spec's file. The processes of the pod are in it, so they can read the file
regardless of the user that the image names."""

# Required by the "restricted" Pod Security Standard.
_POD_SECURITY = {"runAsNonRoot": True, "fsGroup": _GROUP, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def driver_template(
    given: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str], secret: str, mark: str
) -> dict[str, Any]:
    """Return the template for Spark's `spark.kubernetes.driver.podTemplateFile`.

    Args:
        given: the pod template of the link, whose security settings take precedence.
        secret: name of the secret that holds the spec.
        mark: name of the environment variable with the directory in which the driver announces its start.
    """
    pod = _template(given, labels, annotations, secret)
    container = pod["spec"]["containers"][0]
    pod["spec"]["volumes"].append({"name": RUN_VOLUME, "emptyDir": {}})
    container["volumeMounts"].append({"name": RUN_VOLUME, "mountPath": RUN_FOLDER})
    container.setdefault("env", []).append({"name": mark, "value": RUN_FOLDER})
    container["readinessProbe"] = _READY
    return pod


def executor_template(
    given: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str], secret: str
) -> dict[str, Any]:
    """Return the template for Spark's `spark.kubernetes.executor.podTemplateFile`. Executors need no access to the API
    server."""
    pod = _template(given, labels, annotations, secret)
    pod["spec"]["automountServiceAccountToken"] = False
    variables = pod["spec"]["containers"][0].setdefault("env", [])
    if all(variable["name"] != VARIABLE for variable in variables):
        variables.append({"name": VARIABLE, "valueFrom": _ZONE})
    return pod


def secret_of(spec: Spec, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret that holds a spec."""
    return {
        "metadata": {"name": name, "labels": dict(labels), "annotations": dict(annotations)},
        "type": "Opaque",
        "immutable": True,
        "data": {SPEC_FILE: base64.b64encode(spec.model_dump_json().encode()).decode()},
    }


def spec_text(secret: Mapping[str, Any]) -> bytes:
    """Return the spec in a Secret, as JSON."""
    return base64.b64decode((secret.get("data") or {}).get(SPEC_FILE, ""))


def _template(
    given: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str], secret: str
) -> dict[str, Any]:
    pod: dict[str, Any] = copy.deepcopy(dict(given))
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    metadata = pod.setdefault("metadata", {})
    metadata["labels"] = metadata.get("labels", {}) | labels
    metadata["annotations"] = metadata.get("annotations", {}) | annotations
    spec = pod.setdefault("spec", {})
    spec["securityContext"] = _POD_SECURITY | spec.get("securityContext", {})
    volume = {"name": "strait-spec", "secret": {"secretName": secret, "defaultMode": _SPEC_MODE}}
    spec["volumes"] = [*spec.get("volumes", []), volume]
    container = spec.setdefault("containers", [{"name": "spark"}])[0]
    container["securityContext"] = _CONTAINER_SECURITY | container.get("securityContext", {})
    mount = {"name": "strait-spec", "mountPath": SPEC_FOLDER, "readOnly": True}
    container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
    return pod

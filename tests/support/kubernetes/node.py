"""A node for a real API server whose containers are processes of this machine. Needs root.

The image is an overlay over this machine's own root folder, laid out as docker/Dockerfile does it, with its real
entrypoint and its user. The node takes every pod without one, makes its volumes (config maps, secrets with their modes
and groups, tokens bound to the pod, empty folders, claims), runs its first container in namespaces of its
own under its restricted user, asks its readiness probe, reports its state, serves its log and ends it with its grace.

It is no kubelet: no images, no networks (an address of 127/8 for each pod), no limits, no eviction, no restarts.
"""

import base64
import contextlib
import http.server
import os
import secrets
import shlex
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from kubernetes import client
from strait.embedded.ports import free_ports
from support.doc_tables import ROOT
from support.kubernetes import binaries
from support.kubernetes.control_plane import ControlPlane

NAME = "toy"
USER, GROUP = 50_000, 0  # the image's
_POLL_SECONDS = 0.2


@dataclass
class Container:
    """A pod's one container on this node."""

    pod: dict[str, Any]
    folder: Path
    address: str
    process: subprocess.Popen[bytes]
    started_at: str
    probe: list[str]
    ready: bool = False
    reported: bool = False
    kill_at: float | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def first_process(self) -> int | None:
        """The container's process 1, as seen from here."""
        try:
            text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        except OSError:
            return None
        return int(text.split()[0]) if text.split() else None

    def signal(self, number: int) -> None:
        if (pid := self.first_process()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def probed(self) -> bool:
        pid = self.first_process()
        if pid is None:
            return False
        asked = ["nsenter", "--target", str(pid), "--mount", "--root", "--", *self.probe]
        return subprocess.run(asked, capture_output=True, timeout=30, check=False).returncode == 0


class Node:
    """Start it once the control plane runs; stop it before."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path, python: Path) -> None:
        """``python``: the virtual environment that plays the image's."""
        self._plane, self._namespace, self._folder, self._venv = plane, namespace, folder, python
        self._core = client.CoreV1Api(plane.admin())
        self._containers: dict[str, Container] = {}
        # Not those of another run's pods, whose drivers have the same ports.
        net = f"127.{1 + secrets.randbelow(250)}.{secrets.randbelow(250)}"
        self._addresses = iter(f"{net}.{host}" for host in range(1, 250))
        self._port = free_ports(1)[0]
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, daemon=True),
            threading.Thread(target=self._run, daemon=True),
        ]
        self.claims = folder / "claims"
        """The volume of each persistent volume claim."""
        self.paused = False
        """Takes no new pods while it is."""
        self.trouble: list[str] = []

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._plane.ca_file, self._plane.key_file)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._core.create_node({"metadata": {"name": NAME}})
        room = {"cpu": "64", "memory": "64Gi", "pods": "50"}
        status = {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Toy"}],
        }
        self._core.patch_node_status(NAME, {"status": status})
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._threads[1].is_alive():
            self._threads[1].join(60)
            self._server.shutdown()
        for container in self._containers.values():
            container.signal(signal.SIGKILL)
            container.process.wait(30)
        self._server.server_close()

    def containers(self) -> list[str]:
        """Pods whose container lives."""
        return [one.pod["metadata"]["name"] for one in self._living()]

    def kill(self, pod: str) -> None:
        """Kill -9 the JVM of a container, as the kernel does that runs out of memory."""
        for container in self._living():
            if container.pod["metadata"]["name"] == pod:
                for process in psutil.Process(container.process.pid).children(recursive=True):
                    if process.name() == "java":
                        process.kill()

    def root_of(self, pod: str) -> Path:
        """The file system that a living container sees."""
        found = next(one for one in self._living() if one.pod["metadata"]["name"] == pod)
        return Path(f"/proc/{found.first_process()}/root")

    def _living(self) -> list[Container]:
        return [one for one in self._containers.values() if one.process.poll() is None]

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            try:
                pods = self._json(self._core.list_namespaced_pod(self._namespace, _request_timeout=10))["items"]
            except (ApiException, HTTPError) as error:
                self.trouble.append(f"listing pods: {error}"[:500])
                continue
            for pod in pods:
                try:
                    self._see(pod)
                except ApiException as error:
                    if error.status not in (404, 409):  # gone, or changed meanwhile: seen again in a moment
                        self.trouble.append(f"{pod['metadata']['name']}: {error.status} {error.body}"[:500])
            listed = {pod["metadata"]["uid"] for pod in pods}
            for uid, container in self._containers.items():
                if uid not in listed and container.process.poll() is None:
                    container.signal(signal.SIGKILL)  # removed by force

    def _see(self, pod: dict[str, Any]) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        deleting = pod["metadata"].get("deletionTimestamp")
        container = self._containers.get(uid)
        if container is None and not deleting and not self.paused:
            if not pod["spec"].get("nodeName"):
                binding = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": NAME}}
                self._core.create_namespaced_binding(self._namespace, binding, _preload_content=False)
            elif pod["status"].get("phase") == "Pending":
                self._start(pod)
            return
        if container is not None and container.process.poll() is not None and not container.reported:
            container.reported = True
            code = container.process.returncode
            self._report(container, exit_code=code if code >= 0 else 128 - code)
        elif container is not None and not container.reported and not container.ready and container.probed():
            container.ready = True
            self._report(container)
        if deleting:
            self._end(pod, container)

    def _end(self, pod: dict[str, Any], container: Container | None) -> None:
        if container is None or container.process.poll() is not None:
            self._core.delete_namespaced_pod(pod["metadata"]["name"], self._namespace, grace_period_seconds=0)
        elif container.kill_at is None:
            container.kill_at = time.monotonic() + pod["metadata"].get("deletionGracePeriodSeconds", 30)
            container.signal(signal.SIGTERM)
        elif time.monotonic() > container.kill_at:
            container.signal(signal.SIGKILL)

    def _start(self, pod: dict[str, Any]) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        folder = self._folder / uid
        folder.mkdir()
        address = next(self._addresses)
        try:
            volumes = {volume["name"]: self._volume(volume, pod, folder) for volume in spec.get("volumes", [])}
        except ApiException as error:
            if error.status != 404:
                raise
            folder.rename(folder.with_name(f"{uid}.{time.monotonic_ns()}"))
            return  # a kubelet waits, too, for a secret or config map that does not exist yet
        container = spec["containers"][0]
        script = folder / "run.sh"
        script.write_text("\n".join(self._script(pod, container, folder, address, volumes)))
        # They end with this thread, however it ends.
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child=SIGKILL",
            "sh",
            "-e",
            str(script),
        ]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        probe = container.get("readinessProbe", {}).get("exec", {}).get("command", ["true"])
        self._containers[uid] = Container(pod, folder, address, process, _now(), probe)
        self._report(self._containers[uid])

    def _volume(self, volume: dict[str, Any], pod: dict[str, Any], folder: Path) -> Path:
        path = folder / f"volume-{volume['name']}"
        path.mkdir()
        group = pod["spec"].get("securityContext", {}).get("fsGroup")
        if config_map := volume.get("configMap"):
            found = self._core.read_namespaced_config_map(config_map["name"], self._namespace)
            keys = {item["key"]: item["path"] for item in config_map.get("items", [])}
            for key, text in (found.data or {}).items():
                if not keys or key in keys:
                    _write(path / keys.get(key, key), text.encode(), config_map.get("defaultMode", 0o644), group)
        elif secret := volume.get("secret"):
            found = self._core.read_namespaced_secret(secret["secretName"], self._namespace)
            for key, text in (found.data or {}).items():
                _write(path / key, base64.b64decode(text), secret.get("defaultMode", 0o644), group)
        elif "projected" in volume:
            _write(path / "token", self._token(pod).encode(), 0o600, group)
            _write(path / "ca.crt", self._plane.ca_file.read_bytes(), 0o644, group)
            _write(path / "namespace", self._namespace.encode(), 0o644, group)
        elif claim := volume.get("persistentVolumeClaim"):
            path = self.claims / claim["claimName"]
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o777)
        else:
            path.chmod(0o777)
        return path

    def _token(self, pod: dict[str, Any]) -> str:
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        request = {"spec": {"expirationSeconds": 3607, "boundObjectRef": bound}}
        account = pod["spec"].get("serviceAccountName", "default")
        return str(self._core.create_namespaced_service_account_token(account, self._namespace, request).status.token)

    def _script(
        self, pod: dict[str, Any], container: dict[str, Any], folder: Path, address: str, volumes: dict[str, Path]
    ) -> list[str]:
        """Lays the image's root folder out, and becomes the container's process."""
        name, root, spark = pod["metadata"]["name"], folder / "overlay" / "root", _pyspark(self._venv)
        groups = pod["spec"].get("securityContext", {}).get("fsGroup")
        hosts = f"127.0.0.1 localhost\n127.0.0.1 kubernetes.default.svc\n{address} {name}\n"
        _write(folder / "hosts", hosts.encode(), 0o644, None)
        lines = [
            f"hostname {name[:63]}",
            f"mkdir -p {folder}/overlay; mount -t tmpfs tmpfs {folder}/overlay",
            f"mkdir -p {folder}/overlay/upper {folder}/overlay/work {root}",
            f"mount -t overlay overlay -o lowerdir=/,upperdir={folder}/overlay/upper,workdir={folder}/overlay/work {root}",
            f"mount -t proc proc {root}/proc; mount --rbind /dev {root}/dev",
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",  # noqa: S108
            f"chmod 755 {root}/root",  # this machine's Python lies below it
            f"echo 'airflow:x:{USER}:{GROUP}::/home/airflow:/bin/bash' >>{root}/etc/passwd",
            f"install -d -o {USER} -g {GROUP} {root}/home/airflow",
            # As docker/Dockerfile does:
            f"install -d -o {USER} -g {GROUP} {root}/opt/spark {root}/opt/spark/work-dir {root}/opt/airflow",
            f"for part in bin jars python sbin; do ln -s {spark}/$part {root}/opt/spark/$part; done",
            f"cp -r {ROOT}/include {ROOT}/spark_jobs {root}/opt/airflow/",
            f"mkdir -p {root}/opt/airflow/docker; cp {ROOT}/docker/entrypoint.sh {root}/opt/airflow/docker/",
            f"cp {binaries.dumb_init()} {root}/usr/bin/dumb-init",
            f"cp {folder}/hosts {root}/etc/hosts",
        ]
        for mount in container.get("volumeMounts", []):
            place = f"{root}/{_place(mount['mountPath'])}"
            lines += [f"mkdir -p {place}", f"mount --bind {volumes[mount['name']]} {place}"]
        environment = self._environment(pod, container, address)
        become = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--reuid",
            str(USER),
            "--regid",
            str(GROUP),
            "--inh-caps=-all",
            "--bounding-set=-all",
        ]
        become += ["--groups", str(groups)] if groups is not None else ["--clear-groups"]
        command = [*(container.get("command") or _ENTRYPOINT), *container.get("args", [])]
        words = ["env", "-i", *(f"{key}={value}" for key, value in environment.items()), *become, *command]
        inside = f"cd /opt/spark/work-dir && exec {shlex.join(words)}"
        return [*lines, f"exec chroot {root} /bin/sh -c {shlex.quote(inside)}"]

    def _environment(self, pod: dict[str, Any], container: dict[str, Any], address: str) -> dict[str, str]:
        environment = {
            "PATH": f"{self._venv}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/home/airflow",
            "PYTHONPATH": "/opt/airflow/include",
            "PYTHONDONTWRITEBYTECODE": "1",
            "STRAIT_TEST_RUN": os.environ.get("STRAIT_TEST_RUN", ""),  # the suite looks for what it left behind
        }
        fields = {"status.podIP": address, "metadata.name": pod["metadata"]["name"]}
        fields |= {f"metadata.labels['{name}']": value for name, value in pod["metadata"].get("labels", {}).items()}
        for variable in container.get("env", []):
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            environment[variable["name"]] = _field(fields, path) if path else variable.get("value", "")
        return environment

    def _report(self, container: Container, exit_code: int | None = None) -> None:
        """Tell the API server what the container does."""
        pod, ended = container.pod, exit_code is not None
        ended_state = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed", "finishedAt": _now()}
        state = {"terminated": ended_state | {"startedAt": container.started_at}} if ended else {}
        status = {
            "phase": ("Failed" if exit_code else "Succeeded") if ended else "Running",
            "podIP": container.address,
            "hostIP": "127.0.0.1",
            "startTime": container.started_at,
            "conditions": [{"type": "Ready", "status": str(container.ready and not ended)}],
            "containerStatuses": [
                {
                    "name": pod["spec"]["containers"][0]["name"],
                    "state": state or {"running": {"startedAt": container.started_at}},
                    "ready": container.ready and not ended,
                    "restartCount": 0,
                    "image": pod["spec"]["containers"][0]["image"],
                    "imageID": NAME,
                }
            ],
        }
        self._core.patch_namespaced_pod_status(pod["metadata"]["name"], self._namespace, {"status": status})

    def _json(self, answer: Any) -> Any:
        return self._core.api_client.sanitize_for_serialization(answer)

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        containers = self._containers

        class Logs(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urllib.parse.urlparse(self.path)
                _, _, _, pod, *_ = asked.path.split("/")  # /containerLogs/<namespace>/<pod>/<container>
                found = [one for one in list(containers.values()) if one.pod["metadata"]["name"] == pod]
                lines = found[-1].log.read_bytes().splitlines(keepends=True) if found else []
                tail = int(urllib.parse.parse_qs(asked.query).get("tailLines", ["0"])[0])
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(b"".join(lines[-tail:]))

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        return Logs


_ENTRYPOINT = ["/usr/bin/dumb-init", "--", "/opt/airflow/docker/entrypoint.sh"]


def _place(mount_path: str) -> str:
    """/var/run is a link to /run, which a mount from outside would follow out of the container."""
    return mount_path.replace("/var/run/", "/run/", 1).lstrip("/")


def _write(path: Path, data: bytes, mode: int, group: int | None) -> None:
    """As a kubelet does: owned by root; with a group of the pod's, that may read it."""
    path.write_bytes(data)
    path.chmod(mode | (0o440 if group is not None else 0))
    if group is not None:
        os.chown(path, 0, group)


def _pyspark(venv: Path) -> Path:
    return next(venv.glob("lib/python3*/site-packages/pyspark"))


def _field(fields: Mapping[str, str], path: str) -> str:
    """A label that the pod does not have is empty, as the kubelet has it; nothing else may be missing."""
    return fields.get(path, "") if path.startswith("metadata.labels[") else fields[path]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

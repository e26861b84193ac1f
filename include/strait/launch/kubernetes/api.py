"""Requests to one namespace of a Kubernetes API server, by the official client, with its errors translated.

Objects are passed and returned in the form of the API's JSON.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

from strait.config.kubernetes_settings import MASTER_PREFIX, Kubernetes
from strait.errors import ConfigError, LaunchError

_SECONDS = (5.0, 30.0)  # to connect, and to read
_NOT_FOUND = 404
_CONFLICT = 409
_NO_CONTAINER_YET = 400
_LOG_LINES = 2000
_HINTS = {
    401: "the token has expired or is another cluster's: renew it where `spark.kubernetes` says that it is",
    403: "grant the rights of docs/how-to/run-on-kubernetes.md to the submitter",
}


class KubernetesUnavailable(LaunchError):
    """The API server cannot be reached, or cannot respond now; a retry may help."""

    retriable = True


class Api:
    """One namespace.

    Args:
        master: Spark's name of the API server, `k8s://https://…`.
    """

    def __init__(self, master: str, settings: Kubernetes) -> None:
        self.namespace = settings.namespace
        self.url = master.removeprefix(MASTER_PREFIX)
        self._settings = settings

    def items(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Return every object of a kind, or those that match a label selector."""
        reply = self._must(f"listing {kind}s", f"list_namespaced_{kind}", label_selector=selector)
        return list(self._parsed(reply)["items"])

    def read(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return the object of this name, or None if there is none."""
        reply = self._call(f"reading {kind} {name}", f"read_namespaced_{kind}", name, or_none=_NOT_FOUND)
        return self._parsed(reply) if reply is not None else None

    def create(self, kind: str, body: dict[str, Any]) -> None:
        """Create an object whose name is not in use."""
        self._call(f"creating {kind} {body['metadata']['name']}", f"create_namespaced_{kind}", body=body)

    def store(self, kind: str, body: dict[str, Any]) -> None:
        """Create or replace an object. If two callers create it at the same time, one of them wins."""
        name = body["metadata"]["name"]
        doing = f"storing {kind} {name}"
        if self._call(doing, f"replace_namespaced_{kind}", name, body=body, or_none=_NOT_FOUND) is None:
            self._call(doing, f"create_namespaced_{kind}", body=body, or_none=_CONFLICT)

    def give(self, kind: str, name: str, owner: dict[str, Any]) -> None:
        """Have an object removed together with its owner. Does nothing if the object no longer exists."""
        body = {"metadata": {"ownerReferences": [owner]}}
        self._call(f"giving {kind} {name} its owner", f"patch_namespaced_{kind}", name, body=body, or_none=_NOT_FOUND)

    def delete(self, kind: str, name: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object. Does nothing if it no longer exists, or if its name now belongs to another one than
        ``uid``.

        Args:
            uid: of the object to delete; "": any of that name.
            grace_seconds: until a pod's processes are killed; None: as set in the pod.
        """
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            self._call(f"deleting {kind} {name}", f"delete_namespaced_{kind}", name, body=body, or_none=_NOT_FOUND)
        except _Refused as error:
            if not uid or error.status != _CONFLICT:
                raise

    def log(self, pod: str, max_bytes: int, container: str = "") -> str:
        """Return the end of the output of a pod's container; "" if the container or the pod does not exist (any more).

        Args:
            container: "" if the pod has only one.
        """
        which = {"container": container} if container else {}
        doing = f"reading the log of pod {pod}"
        try:
            reply = self._must(doing, "read_namespaced_pod_log", pod, tail_lines=_LOG_LINES, **which)
        except _Refused as error:
            if error.status in (_NO_CONTAINER_YET, _NOT_FOUND):
                return ""
            raise
        return reply[-max_bytes:].decode(errors="replace")

    def _parsed(self, reply: bytes) -> dict[str, Any]:
        try:
            return dict(json.loads(reply))
        except (TypeError, ValueError):
            hint = "check `spark.master`: a proxy may answer in its place"
            text = f"namespace {self.namespace}: {self.url} answers something other than JSON"
            raise KubernetesUnavailable(text, hint=hint) from None

    def _must(self, doing: str, method: str, *arguments: Any, **more: Any) -> bytes:
        reply = self._call(doing, method, *arguments, **more)
        assert reply is not None
        return reply

    def _call(self, doing: str, method: str, *arguments: Any, or_none: int = 0, **more: Any) -> bytes | None:
        """Send a request and return the unparsed reply. ``or_none``: the status for which None is returned."""
        about = f"namespace {self.namespace}: {doing}"
        where = (*arguments, self.namespace)
        try:
            with self._translated(about):
                # The client's own classes would reject objects of a server whose fields differ from theirs.
                reply = self._method(method)(*where, _preload_content=False, _request_timeout=_SECONDS, **more)
                return bytes(reply.data)
        except _Refused as error:
            if error.status == or_none:
                return None
            raise

    def _method(self, name: str) -> Callable[..., Any]:
        from kubernetes import client

        group = client.NetworkingV1Api if name.endswith("network_policy") else client.CoreV1Api
        method: Callable[..., Any] = getattr(group(self._client), name)
        return method

    @contextmanager
    def _translated(self, about: str) -> Iterator[None]:
        from kubernetes.client.rest import ApiException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ApiException as error:
            status = int(error.status or 0)
            if status == 429 or status >= 500:
                raise KubernetesUnavailable(f"{about}: {self.url}: {_message(error)}") from None
            raise _Refused(about, self.url, status, _message(error)) from None
        except (HTTPError, HTTPException, OSError) as error:
            text = f"{about}: {self.url} does not answer: {type(error).__name__}"
            raise KubernetesUnavailable(text, hint="check `spark.master`, the network and the CA") from error

    @cached_property
    def _client(self) -> Any:
        from kubernetes import client  # this import takes a second, and only these applications need it

        return client.ApiClient(self._configuration())

    def _configuration(self) -> Any:
        from kubernetes import client, config

        settings, configuration = self._settings, client.Configuration()
        if settings.kubeconfig:
            try:
                config.load_kube_config(settings.kubeconfig, settings.context, configuration, persist_config=False)
            except yaml.YAMLError as error:
                raise _unusable(f"kubeconfig {settings.kubeconfig}: is not YAML") from error
            except (config.ConfigException, OSError, TypeError, ValueError, AttributeError, LookupError) as error:
                raise _unusable(f"kubeconfig {settings.kubeconfig}: context {settings.context}: {error}") from error
        else:
            configuration.ssl_ca_cert = _readable(settings.ca_file)
            configuration.refresh_api_key_hook = self._refresh_token
            self._refresh_token(configuration)
        configuration.host = self.url
        configuration.retries = False
        return configuration

    def _refresh_token(self, configuration: Any) -> None:
        """Read the token again: tokens of pods are replaced within an hour."""
        token = Path(_readable(self._settings.token_file)).read_text(encoding="utf-8").strip()
        configuration.api_key = {"authorization": f"Bearer {token}"}


class _Refused(LaunchError):
    """The API server rejected a request."""

    def __init__(self, about: str, url: str, status: int, message: str) -> None:
        super().__init__(f"{about}: {url}: {message}", hint=_HINTS.get(status, ""))
        self.status = status


def _message(error: Any) -> str:
    """Return the server's error message; its reply quotes names, never values."""
    try:
        said = str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        said = str(error.reason)
    return f"{error.status} {said[:500]}"


def _readable(path: str | None) -> str:
    try:
        with Path(str(path)).open("rb"):
            return str(path)
    except OSError as error:
        raise _unusable(f"{path} cannot be read: {error.strerror}") from error


def _unusable(problem: str) -> ConfigError:
    return ConfigError("spark.kubernetes", [problem])


def items_owned_by(items: Sequence[dict[str, Any]], pod: str, living_uid: str) -> list[dict[str, Any]]:
    """Return the items that a pod of that name owns or has owned, except those of the live one."""
    return [
        item
        for item in items
        if any(
            owner["kind"] == "Pod" and owner["name"] == pod and owner["uid"] != living_uid
            for owner in item["metadata"].get("ownerReferences") or []
        )
    ]

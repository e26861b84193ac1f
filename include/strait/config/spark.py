"""The `spark:` block of a link: the cluster that runs its applications, and how."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from strait.config import kubernetes_settings, yarn_settings
from strait.config.kubernetes_settings import CHECKPOINT_DIR, Kubernetes
from strait.config.settings import Settings
from strait.config.yarn_settings import Yarn

_LAUNCHERS = {"yarn": yarn_settings.LAUNCHERS, "kubernetes": kubernetes_settings.LAUNCHERS}
"""Cluster manager that only runs drivers in the cluster -> the Spark properties with which Strait creates and finds
applications, so that no link may set them. A name that ends with a dot is a prefix."""

_MASTERS = {"yarn": "`master: yarn`", "kubernetes": "a `master` that starts with k8s://"}

_URL = r"^https?://[^\s/@]+$"


class Standalone(Settings):
    """How applications are submitted to a Spark Standalone cluster and run there."""

    rest_url: str | None = Field(
        None,
        pattern=_URL,
        description="Address of the master's REST server. Default: `http://`, the master's host, port 6066.",
    )
    web_url: str | None = Field(
        None,
        pattern=_URL,
        description="Address of the master's web UI. Default: `http://`, the master's host, port 8080.",
    )
    token_file: str | None = Field(
        None,
        pattern=r"^/\S+$",
        description="File with the token that the REST server's filter `org.apache.spark.ui.JWSFilter` asks for, read again "
        "for each request. Default: no token.",
    )
    driver_cores: int = Field(1, ge=1, le=64, description="Cores of the driver.")


class Spark(Settings):
    """The cluster that runs the applications of a link, and how."""

    master: str = Field(
        "local",
        pattern=r"^(local|yarn|spark://[^\s/]+|k8s://https://[^\s/@]+)$",
        description="Spark master: `local` (one JVM on the submitting host), the URL of a Spark Standalone master, `yarn`, or "
        "`k8s://` and the https URL of a Kubernetes API server.",
    )
    deploy_mode: Literal["client", "cluster"] = Field(
        "client",
        description="Place of the driver: `client` runs it on the submitting host, `cluster` on a worker of the Spark cluster, "
        "which starts it again if it fails. Always `cluster` on YARN and in Kubernetes.",
    )
    spark_conn_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.:\-]+$",
        description="Airflow Connection of type Spark that names the master, instead of `master` and `deploy_mode`. Read by "
        "the DAGs only.",
    )
    head_start: bool = Field(
        True,
        description="Copy before Spark has started, in one more process for each slot. Only with `master: local`.",
    )
    driver_memory: str = Field(
        "512m", pattern=r"^\d+[mg]$", description="Heap of the driver's JVM, in MiB (`m`) or GiB (`g`)."
    )
    conf: Mapping[str, str] = Field(
        default_factory=dict, description="Additional Spark properties, passed through unchanged."
    )
    package: str | None = Field(
        None,
        pattern=r"^([a-z][a-z0-9+.-]*:/)?/\S+\.tar\.gz$",
        description="Archive that `make package` has written, under a path that is the same on every host; on YARN a path on "
        "the submitting host, or a Hadoop URI. The driver and the executors run Strait and its libraries from it. "
        "Default: the same paths as on the submitting host.",
    )
    standalone: Standalone = Field(
        default_factory=Standalone, description="Settings of a Spark Standalone cluster, for `deploy_mode: cluster`."
    )
    yarn: Yarn | None = Field(None, description="Settings of YARN. Required with `master: yarn`.")
    kubernetes: Kubernetes | None = Field(
        None, description="Settings of a Kubernetes cluster. Required with a `k8s://` master."
    )

    @property
    def manager(self) -> Literal["local", "standalone", "yarn", "kubernetes"]:
        """Return the cluster manager that runs the applications."""
        return _manager_of(self.master)

    def directories(self, ledger_dir: str, checkpoint_dir: str) -> tuple[str, str]:
        """Return the directories of the ledger and of the checkpoints, given those on the submitting host.

        On YARN checkpoints are in the working directory of their driver, in Kubernetes in its pod, and are removed with
        it.
        """
        if self.yarn is not None and self.manager == "yarn":
            return f"{self.yarn.directory}/ledger", "checkpoint"
        if self.kubernetes is not None and self.manager == "kubernetes":
            return f"{self.kubernetes.directory}/ledger", CHECKPOINT_DIR
        return ledger_dir, checkpoint_dir

    @model_validator(mode="before")
    @classmethod
    def _drivers_in_the_cluster(cls, given: Any) -> Any:
        if isinstance(given, dict) and _manager_of(str(given.get("master", "local"))) in _LAUNCHERS:
            return {"deploy_mode": "cluster"} | given
        return given

    @model_validator(mode="after")
    def _fits_manager(self) -> "Spark":
        blocks = {"yarn": self.yarn, "kubernetes": self.kubernetes}
        for name, block in blocks.items():
            if name == self.manager:
                if block is None:
                    raise ValueError(f"{name}: needed with {_MASTERS[name]}")
                if self.deploy_mode == "client":
                    raise ValueError(f"deploy_mode: client is not supported with {name}; leave it out")
                if taken := sorted(key for key in self.conf if _is_launchers(name, key)):
                    raise ValueError(f"conf: {', '.join(taken)}: set by Strait, by what is in the {name} block")
            elif block is not None and self.spark_conn_id is None:
                raise ValueError(f"{name}: only with {_MASTERS[name]}")
        if self.package is not None:
            if self.manager == "kubernetes":
                raise ValueError("package: not in Kubernetes, where the image has Strait and its libraries")
            if self.manager != "yarn" and not self.package.startswith("/"):
                raise ValueError("package: a Hadoop URI is possible only with `master: yarn`")
        return self

    @model_validator(mode="after")
    def _fits(self) -> "Spark":
        clusters = {"deploy_mode": self.deploy_mode != "client", "master": self.master != "local"}
        if self.spark_conn_id is not None and (given := [key for key, differs in clusters.items() if differs]):
            raise ValueError(f"{', '.join(given)}: said by the Connection that `spark_conn_id` names; leave it out")
        if self.deploy_mode == "cluster" and self.master == "local":
            raise ValueError("deploy_mode: cluster needs the URL of a Spark cluster in `master`")
        if self.deploy_mode == "client" and self.spark_conn_id is None:
            unused = {"package": self.package is not None, "standalone": self.standalone != Standalone()}
            if given := [key for key, differs in unused.items() if differs]:
                raise ValueError(f"{', '.join(given)}: only with `deploy_mode: cluster`")
        return self


def _manager_of(master: str) -> Literal["local", "standalone", "yarn", "kubernetes"]:
    if master == yarn_settings.MASTER:
        return "yarn"
    if master.startswith(kubernetes_settings.MASTER_PREFIX):
        return "kubernetes"
    return "local" if master == "local" else "standalone"


def _is_launchers(manager: str, key: str) -> bool:
    return any(key == one or (one.endswith(".") and key.startswith(one)) for one in _LAUNCHERS[manager])

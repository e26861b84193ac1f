"""The settings for Kubernetes in a link's `spark:` block."""

from pydantic import Field, model_validator

from strait.config.settings import Settings

MASTER_PREFIX = "k8s://"
CHECKPOINT_DIR = "/tmp/strait"  # noqa: S108  in the driver's container, which has no other users

LAUNCHERS = (
    "spark.master",
    "spark.submit.deployMode",
    "spark.kubernetes.authenticate.submission.",
    "spark.kubernetes.context",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.kubernetes.executor.podNamePrefix",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.kubernetes.namespace",
    "spark.kubernetes.submission.waitAppCompletion",
)

_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_SUBDOMAIN = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
_ABSOLUTE = r"^/\S+$"


class Kubernetes(Settings):
    """Placement of drivers and executors in a Kubernetes cluster, and the credentials for their submission.

    Neither `~/.kube/config` nor the environment is used: a changed context there must not move an application.
    """

    namespace: str = Field(
        pattern=_LABEL,
        description="Namespace of the pods. It belongs to one links file: applications in it that no link has are ended.",
    )
    image: str = Field(
        pattern=r"^[^\s:/][^\s]*$", description="Container image with Spark and Strait, for the driver and executors."
    )
    service_account: str = Field(
        pattern=_SUBDOMAIN, description="Service account of the driver, which makes executors."
    )
    directory: str = Field(
        pattern=r"^([a-z][a-z0-9+.-]*:/)?/\S*[^\s/]$",
        description="Directory of the replication ledger, as a Hadoop URI such as `s3a://bucket/strait`, or a path on a "
        "volume that `pod_template` mounts into all pods.",
    )
    token_file: str | None = Field(
        None,
        pattern=_ABSOLUTE,
        description="File with the submitter's bearer token, read again for each request. Needs `ca_file`.",
    )
    ca_file: str | None = Field(
        None, pattern=_ABSOLUTE, description="PEM file with the certificate authority of the API server."
    )
    kubeconfig: str | None = Field(
        None,
        pattern=_ABSOLUTE,
        description="A kubeconfig file, instead of `token_file` and `ca_file`. Needs `context`.",
    )
    context: str | None = Field(None, min_length=1, description="Context in the kubeconfig file.")
    pod_template: str | None = Field(
        None,
        pattern=_ABSOLUTE,
        description="YAML file of a Pod on the submitting host, for the driver and executors: node selection, "
        "tolerations, volumes. The first container is Spark's.",
    )

    @model_validator(mode="after")
    def _one_kind_of_credentials(self) -> "Kubernetes":
        given = {key for key in ("token_file", "ca_file", "kubeconfig", "context") if getattr(self, key) is not None}
        if given not in ({"token_file", "ca_file"}, {"kubeconfig", "context"}):
            raise ValueError("needs token_file and ca_file, or kubeconfig and context, and not both")
        return self

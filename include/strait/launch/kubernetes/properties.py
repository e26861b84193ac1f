"""The Spark properties of an application on Kubernetes. Pure."""

from pathlib import PurePosixPath

from strait.config.app_spec import Spec
from strait.config.kubernetes_settings import Kubernetes
from strait.config.links import Spark
from strait.launch.kubernetes import names
from strait.launch.properties import TASK_ATTEMPTS, evaluating, own_properties

IMAGE_ROOT = PurePosixPath("/opt/airflow")
"""Directory in the image that holds Strait's `include` and `spark_jobs`; see docker/Dockerfile."""
JOB = f"local://{IMAGE_ROOT}/spark_jobs/replicate.py"

_LOGGING_OPTION = f"-Dlog4j2.configurationFile={IMAGE_ROOT}/include/strait/launch/log4j2.properties"
_EXECUTOR_HEAP_MIB = 512
_EXECUTOR_REST_MIB = 416
"""Memory besides the heap and the slot's buffers: for the rest of the JVM, and Python."""


def kubernetes_properties(
    name: str, spec: Spec, spark: Spark, settings: Kubernetes, driver_template: str, executor_template: str
) -> dict[str, str]:
    """Return all properties of an application; the link's own `spark.conf` takes precedence.

    Args:
        driver_template: path of the driver's pod template.
        executor_template: path of the executors' pod template.
    """
    pod = names.resource_name(name)
    ours = (
        own_properties(_LOGGING_OPTION)
        | {
            "spark.app.name": name,
            "spark.driver.memory": spark.driver_memory,
            "spark.kubernetes.namespace": settings.namespace,
            "spark.kubernetes.container.image": settings.image,
            "spark.kubernetes.authenticate.driver.serviceAccountName": settings.service_account,
            "spark.kubernetes.driver.pod.name": pod,  # if it is in use, another driver of this application exists
            "spark.kubernetes.driver.podTemplateFile": driver_template,
            "spark.kubernetes.executor.podTemplateFile": executor_template,
            "spark.kubernetes.executor.podNamePrefix": pod,
            # The driver's service resolves to it only once it is ready, and it is ready once executors have registered.
            "spark.kubernetes.executor.useDriverPodIP": "true",
            f"spark.kubernetes.driver.service.label.{names.APPLICATION}": pod,
            "spark.kubernetes.submission.waitAppCompletion": "false",
            # It creates no claims, and needs no permission to list them.
            "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
            "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        }
        | _credentials(settings)
        | _executors(spec)
    )
    return evaluating(ours, evaluates=spec.evaluates) | dict(spark.conf)


def _credentials(settings: Kubernetes) -> dict[str, str]:
    """Return the properties with the submitter's credentials."""
    if settings.context is not None:
        return {"spark.kubernetes.context": settings.context}
    prefix = "spark.kubernetes.authenticate.submission"
    return {f"{prefix}.oauthTokenFile": str(settings.token_file), f"{prefix}.caCertFile": str(settings.ca_file)}


def _executors(spec: Spec) -> dict[str, str]:
    """Return the properties of the executors: one pod for each slot, so that they may spread over nodes."""
    return {
        "spark.executor.instances": str(spec.slots),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{_EXECUTOR_HEAP_MIB}m",
        "spark.executor.memoryOverhead": f"{(spec.slot_memory_bytes >> 20) + _EXECUTOR_REST_MIB}m",
        "spark.executor.defaultJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {_LOGGING_OPTION}",
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",  # nodes may have to start, and to pull the image
    }

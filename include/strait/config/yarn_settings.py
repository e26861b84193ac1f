"""The settings for YARN in a link's `spark:` block."""

from typing import Annotated

from pydantic import Field

from strait.config.settings import Settings

MASTER = "yarn"

_URI = r"^[a-z][a-z0-9+.-]*://[^\s?#]*[^\s?#/]$"
LAUNCHERS = (
    "spark.app.name",
    "spark.archives",
    "spark.files",
    "spark.master",
    "spark.pyspark.",
    "spark.submit.deployMode",
    "spark.yarn.archive",
    "spark.yarn.jars",
    "spark.yarn.preserve.staging.files",
    "spark.yarn.queue",
    "spark.yarn.stagingDir",
    "spark.yarn.submit.waitAppCompletion",
    "spark.yarn.tags",
)


class Yarn(Settings):
    """How applications are submitted to YARN, and the directory of their files."""

    directory: str = Field(
        pattern=_URI,
        description="Hadoop URI of a directory that the Hadoop user owns, such as `hdfs:///user/strait`: for the files of "
        "each submission, Spark's jars, and the replication ledger (in `ledger`).",
    )
    hadoop_conf_dir: str | None = Field(
        None,
        pattern=r"^/\S+$",
        description="Directory with `core-site.xml` and `yarn-site.xml` on the submitting host. Default: `HADOOP_CONF_DIR` of "
        "the submitting process.",
    )
    resource_manager: tuple[Annotated[str, Field(pattern=r"^https?://[^\s/@]+\S*$")], ...] = Field(
        (),
        strict=False,
        description="Web addresses of the ResourceManagers, such as `http://rm1:8088`; of several the active one is asked. "
        "Default: those in `yarn-site.xml`.",
    )
    queue: str = Field("default", pattern=r"^[\w.\-]+$", description="Queue that applications are submitted to.")
    user: str | None = Field(
        None,
        pattern=r"^[\w.\-]+$",
        description="Hadoop user on a cluster without Kerberos. Default: the user of the submitting process.",
    )
    tag: str = Field(
        "strait",
        pattern=r"^[a-z0-9_\-]{1,32}$",
        description="YARN application tag by which applications are found. It belongs to one links file: applications with it "
        "that no link has are stopped.",
    )
    spark_jars: str | None = Field(
        None,
        pattern=r"^local:/\S+$",
        description="Path of Spark's jars on every host, such as `local:/opt/spark/jars/*`. Default: an archive in "
        "`directory`, which the first submission uploads.",
    )

"""Settings of a link's applications from an Airflow Connection of type Spark. Pure: the caller reads the Connection.

Airflow's form fills in defaults that mean nothing for most clusters, so a field that is empty or has its default is
treated as unset. Any other field that Strait does not use is an error: an ignored setting would seem to take effect.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from strait.config.spark import Spark
from strait.config.validation import did_you_mean, validated
from strait.errors import ConfigError

TYPE = "spark"

_FORM_DEFAULTS = {"spark-binary": "spark-submit", "rest-scheme": "http", "rest-port": "6066"}

_PLACES: Mapping[str, tuple[str, ...]] = {
    "deploy-mode": ("deploy_mode",),
    "rest-url": ("standalone", "rest_url"),
    "web-url": ("standalone", "web_url"),
    "token-file": ("standalone", "token_file"),
    "namespace": ("kubernetes", "namespace"),
    "queue": ("yarn", "queue"),
    "hadoop-conf-dir": ("yarn", "hadoop_conf_dir"),
    "resource-manager": ("yarn", "resource_manager"),
}
"""Key in the Connection's extra -> its place in the `spark` block."""

_INSTEAD = {
    "keytab": "set `spark.conf` `spark.kerberos.keytab` in the links file, to a path on the submitting host",
    "principal": "set `spark.conf` `spark.kerberos.principal` in the links file",
    "proxy-user": "applications run as the user of Airflow's workers",
    "spark-binary": "Strait runs the `spark-submit` of the PySpark in its environment",
    "spark-home": "Strait runs the `spark-submit` of the PySpark in its environment",
}
"""Extra that the Spark provider of Airflow uses and Strait does not -> the alternative."""

_REST = ("rest-scheme", "rest-port")
"""The form's fields for the address of a Standalone master's REST server; together they form one address."""


class SparkConnection(NamedTuple):
    """The fields of the Connection. ``extra`` is its JSON object."""

    conn_type: str
    host: str
    port: int | None
    login: str
    password: str
    extra: Mapping[str, Any]


def with_connection(spark: Spark, connection: SparkConnection, where: str) -> Spark:
    """Return the block with the Connection's settings, and without the reference to the Connection.

    Raises:
        ConfigError: the Connection is not of type Spark, lacks a host, or has fields that Strait does not use. Of their
            values the error contains only the type.
    """
    problems = []
    if connection.conn_type != TYPE:
        problems.append(f"has type {connection.conn_type!r}, not {TYPE!r}")
    if not connection.host:
        problems.append("has no host: it names the master")
    problems += [f"{field}: is not used" for field in ("login", "password") if getattr(connection, field)]
    extra = {key: value for key, value in connection.extra.items() if value not in (None, "")}
    extra = {key: value for key, value in extra.items() if str(value) != _FORM_DEFAULTS.get(key)}
    known = {*_PLACES, *_REST}
    problems += [f"extra.{key}: is not used{_alternative(key, known)}" for key in extra if key not in known]
    if problems:
        raise ConfigError(where, problems, hint=f"extras that Strait uses: {', '.join(sorted(known))}")
    block: dict[str, Any] = spark.model_dump(exclude={"spark_conn_id", "deploy_mode"}) | {"master": _master(connection)}
    for key, value in _with_rest_url(extra, connection.host).items():
        *outer, last = _PLACES[key]
        inner = block
        for name in outer:
            if inner[name] is None:
                raise ConfigError(where, [f"extra.{key}: needs `spark.{name}` in the links file"])
            inner = inner[name]
        inner[last] = value
    return validated(Spark, block, where)


def _alternative(key: str, known: Collection[str]) -> str:
    return f": {_INSTEAD[key]}" if key in _INSTEAD else did_you_mean(key, known)


def _master(connection: SparkConnection) -> str:
    """Return the master's URL. Airflow stores a host with or without its scheme, as typed into the form or parsed from
    a URI."""
    host = connection.host.rstrip("/")
    if "://" not in host and connection.port is not None:
        host = f"spark://{host}"
    return host if connection.port is None else f"{host}:{connection.port}"


def _with_rest_url(extra: Mapping[str, Any], host: str) -> dict[str, Any]:
    """Return the extra with one address in place of the form's two fields."""
    rest = {key: str(extra.get(key, _FORM_DEFAULTS[key])) for key in _REST}
    others = {key: value for key, value in extra.items() if key not in _REST}
    if len(others) == len(extra):
        return others
    bare = host.rstrip("/").rpartition("://")[2]
    return {"rest-url": f"{rest['rest-scheme']}://{bare}:{rest['rest-port']}"} | others

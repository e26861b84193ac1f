"""A link's configuration in Airflow: the links file, Connections that override its clusters, and a Variable that
overrides its topics.

`link_names` and `links_with_approval` are cheap. Functions that read Connections or Variables must not be called when the
DAG file is parsed: they query Airflow's database, through Airflow.
"""

import contextlib
import hashlib
import json
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from strait.config.links import Link, LinksFile, Spark, Topics
    from strait.errors import ConfigError
    from strait.state.link_handle import ConfiguredLink

CONNECTION_PREFIX = "strait_"
VARIABLE_PREFIX = "strait_topics_"
REJECTED_PREFIX = "strait_rejected_"
SECRETS_DIR = "STRAIT_SECRETS_DIR"
"""Environment variable: the directory below which Connections may refer to files."""
_WATCH = "_watch"
SHARED_SECONDS = 2.0
"""Age up to which the watches of a process share a Connection that was read: a read costs the triggerer's parent process ten
milliseconds of CPU."""

PAUSE_DAG, QUARANTINE_DAG = "strait-pause", "strait-quarantine"
FAILOVER_DAG, REHEARSAL_DAG = "strait-failover", "strait-rehearsal"
AUDIT_DAG = "strait-audit"
"""IDs of the DAGs that all links share. They differ from those of every link, which start with `strait_`."""


def links_file() -> Path:
    """Return ``$STRAIT_LINKS_FILE``, else ``links.yaml`` in the project."""
    from strait.config.home import project_root

    return Path(os.environ.get("STRAIT_LINKS_FILE") or project_root() / "links.yaml")


def link_names() -> tuple[str, ...]:
    """Return the links, each of which gets DAGs. A link's invalid settings fail only its own runs."""
    from strait.config.outline import link_names

    return link_names(links_file())


def links_with_approval() -> frozenset[str]:
    """Return the links that also get an approval DAG."""
    from strait.config.outline import links_with_approval

    return links_with_approval(links_file())


def dag_id(link: str, *suffix: str) -> str:
    """Return a DAG ID of the link. Characters that Airflow does not accept become `_`; runs of such a link fail."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", "_".join(["strait", link, *suffix]))


def dags_of(link: str, asked: frozenset[str]) -> tuple[str, ...]:
    """Return the IDs of the DAGs of this link alone. ``asked``: the links that also get an approval DAG."""
    return dag_id(link), *((dag_id(link, "approval"),) if link in asked else ())


def watch_name(link: str) -> str:
    """Return the name of the asset that represents everything the link depends on."""
    return f"{dag_id(link)}{_WATCH}"


def is_watch(asset: str) -> bool:
    """Return whether an asset of this name is the watch of a link."""
    return asset.startswith(dag_id("")) and asset.endswith(_WATCH)


def clusters_of(link: str, *, reverse: bool = False, beside: bool = False, shared: bool = False) -> "LinksFile":
    """Return the links file with this link alone: clusters and Spark with Connections applied, topics as in the file.

    ``reverse``: include the links in the opposite direction. ``beside``: and those from the same source. ``shared``:
    Connections of clusters may be `SHARED_SECONDS` old.
    """
    from strait.config.client_properties import overridden
    from strait.config.links import load_link, with_origin

    _refuse_shared_dag(link)
    file = load_link(links_file(), link, reverse=reverse, beside=beside)
    found = file.links[link]
    clusters = {}
    for name in file.clusters:
        own = name in (found.source, found.destination)
        over = _connection(name, shared=shared) if own else _valid_connection(name)
        clusters[name] = overridden(file.clusters[name], over)
        if over and own:
            found = with_origin(found, name, f"Airflow Connection {connection_id(name)}")
    if found.spark.spark_conn_id is not None:
        found = found.model_copy(update={"spark": _spark(found.spark, found.spark.spark_conn_id)})
    return file.model_copy(update={"clusters": clusters, "links": {**file.links, link: found}})


def with_live_topics(file: "LinksFile", link: str) -> "LinksFile":
    """Return the file with the topics of the link's Variable, if it exists. Raises ConfigError if that is invalid."""
    from strait.config.links import with_topics

    topics = _live_topics(link)
    if topics is None:
        return file
    live = with_topics(file.links[link], topics, where=f"Airflow Variable {variable_name(link)}")
    return file.model_copy(update={"links": {**file.links, link: live}})


def link_of(link: str, *, live: bool = False, reverse: bool = False, beside: bool = False) -> "ConfiguredLink":
    """Return the link of `clusters_of`. ``live``: with the topics of its Variable, if it exists."""
    from strait.state.link_handle import ConfiguredLink

    file = clusters_of(link, reverse=reverse, beside=beside)
    return ConfiguredLink.of(with_live_topics(file, link) if live else file, link)


class LiveSettings(NamedTuple):
    """The configuration of a link. It holds secrets; its ``digest`` reveals none.

    Attributes:
        digest: changes with every change of the configuration.
        file: the part that can be read: if the Variable is invalid, with the topics of the links file; None: no part.
        error: why not all of it can be used; None if it can.
        parts: `topics`, each cluster and the rest -> their origin, "" for the links file, and their digest. Empty on an
            error.
    """

    digest: str
    file: "LinksFile | None" = None
    error: "ConfigError | None" = None
    parts: Mapping[str, tuple[str, str]] = MappingProxyType({})


def live_settings(link: str) -> LiveSettings:
    """Return the current configuration by the links file, the Connections and the Variables. Connections of clusters may be
    `SHARED_SECONDS` old."""
    from strait import __version__
    from strait.errors import ConfigError
    from strait_airflow.alerts import check_alerts

    file: LinksFile | None = None
    try:
        file = clusters_of(link, shared=True)
        live = with_live_topics(file, link)
        found = live.links[link]
        check_alerts(link, found)
        # Deleting the Variable of rejected changes wakes the DAGs, so approval is requested again. A change of the set
        # of links wakes those of the first link, which stops the applications of removed links.
        rejected = _variable(rejected_name(link)) if found.approval == "required" else None
        names = link_names()
        others = names if link == names[0] else ()
    except ConfigError as error:
        return LiveSettings(digest(str(error)), file, error)
    pool = None if found.pool is None else live.pools[found.pool].model_dump_json()
    seen = [__version__, found.model_dump_json(), dict(live.clusters), rejected, others]
    return LiveSettings(digest(seen if pool is None else [*seen, pool]), live, parts=_parts(live, found))


def _parts(file: "LinksFile", link: "Link") -> dict[str, tuple[str, str]]:
    found: dict[str, Any] = {"topics": link.topics.model_dump_json(), "rest": link.model_dump_json(exclude={"topics"})}
    found |= {cluster: dict(file.clusters[cluster]) for cluster in (link.source, link.destination)}
    return {name: (link.origins.get(name, ""), digest(value)) for name, value in found.items()}


def digest(of: Any) -> str:
    """Return a digest of any JSON value.

    It is keyed, since the value may contain passwords: a reader of Airflow's database cannot test guesses against it.
    """
    from airflow.configuration import conf

    key = hashlib.sha256(conf.get("core", "fernet_key", fallback="").encode()).digest()
    text = json.dumps(of, sort_keys=True, default=dict)
    return hashlib.blake2b(text.encode(), key=key, digest_size=12).hexdigest()


def variable_name(link: str) -> str:
    """Return the name of the Variable whose JSON replaces the link's `topics` block."""
    return f"{VARIABLE_PREFIX}{link}"


def topics_text(link: str) -> str | None:
    """Return the text of the link's Variable; None: it does not exist, and the links file applies."""
    return _variable(variable_name(link))


def rejected_name(link: str) -> str:
    """Return the name of the Variable that identifies the link's last rejected changes."""
    return f"{REJECTED_PREFIX}{link}"


def connection_id(cluster: str) -> str:
    """Return the ID of the Connection, of type kafka, whose extra overrides properties of the cluster."""
    return f"{CONNECTION_PREFIX}{cluster}"


def _refuse_shared_dag(link: str) -> None:
    """Raise ConfigError if another link has a DAG of the same ID: Airflow would silently ignore one of them."""
    from strait.errors import ConfigError

    asked = links_with_approval()
    owners: dict[str, set[str]] = defaultdict(set)
    for name in link_names():
        for its_dag in dags_of(name, asked):
            owners[its_dag].add(name)
    for shared, names in owners.items():
        if link in names and len(names) > 1:
            (other, *_) = sorted(names - {link})
            raise ConfigError(
                f"link {link}", [f"its DAG {shared} would be that of link {other}, too"], hint="rename one of them"
            )


def _live_topics(link: str) -> "Topics | None":
    from strait.config.links import parse_topics

    text = topics_text(link)
    return None if text is None else parse_topics(text, where=f"Airflow Variable {variable_name(link)}")


def _spark(spark: "Spark", conn_id: str) -> "Spark":
    """Return the `spark` block with its Connection applied. Raises ConfigError, also if the Connection is missing."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    from strait.config.spark_connection import SparkConnection, with_connection
    from strait.errors import ConfigError

    where = f"Airflow Connection {conn_id}"
    try:
        found = Connection.get(conn_id)
    except AirflowNotFoundException:
        hint = "create it in Airflow, with type Spark, or correct `spark.spark_conn_id`"
        raise ConfigError(where, ["does not exist"], hint=hint) from None
    extra = _object(found.extra, where, hint="leave out what is not a field of the form")
    parts = found.conn_type, found.host or "", found.port, found.login or "", found.password or "", extra
    return with_connection(spark, SparkConnection(*parts), where)


def _variable(name: str) -> str | None:
    from airflow.sdk import Variable

    found: str | None = Variable.get(name, default=None)
    return found


def _connection(cluster: str, *, shared: bool = False) -> dict[str, str]:
    """Return the librdkafka properties in the extra of the cluster's Connection; none if it does not exist."""
    name = connection_id(cluster)
    extra = _shared.extra_of(name) if shared else _extra(name)
    return {} if extra is None else _properties(extra, name)


def _extra(connection: str) -> str | None:
    """Return the extra of a Connection, "" if it has none; None if the Connection does not exist."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return Connection.get(connection).extra or ""
    except AirflowNotFoundException:
        return None


class _Shared:
    """The extras of Connections as a watch of this process has read them last. Thread-safe; one is read at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[str, tuple[float, str | None]] = {}

    def extra_of(self, connection: str) -> str | None:
        """Return the same as `_extra`, at most `SHARED_SECONDS` old."""
        with self._lock:
            read = self._read.get(connection)
            if read is None or time.monotonic() - read[0] >= SHARED_SECONDS:
                read = self._read[connection] = time.monotonic(), _extra(connection)
            return read[1]


_shared = _Shared()


def _valid_connection(cluster: str) -> dict[str, str]:
    """Return the same; none if the Connection is invalid, which concerns the links of that cluster."""
    from strait.errors import ConfigError

    with contextlib.suppress(ConfigError):
        return _connection(cluster)
    return {}


def _properties(extra: str | None, connection: str) -> dict[str, str]:
    """Return the properties in a Connection's extra. Raises ConfigError.

    Values are strings in librdkafka; JSON numbers and booleans are converted to its notation.
    """
    from strait.config.client_properties import file_problems, problems
    from strait.errors import ConfigError

    where = f"Airflow Connection {connection}"
    hint = 'put one JSON object of librdkafka properties there, such as {"bootstrap.servers": "host:9092"}'
    raw = _object(extra, where, hint=hint)
    wrong = [f"extra.{key}: must be a text, number or boolean" for key, value in raw.items() if not _is_scalar(value)]
    if wrong:
        raise ConfigError(where, wrong, hint=hint)
    properties = {key: value if isinstance(value, str) else json.dumps(value) for key, value in raw.items()}
    if refused := list(problems(properties)):
        raise ConfigError(
            where, refused, hint="docs/reference/cluster-properties.md lists those that a cluster may have"
        )
    folder = os.environ.get(SECRETS_DIR)
    if outside := list(file_problems(properties, Path(folder) if folder else None)):
        hint = f"whoever runs Airflow sets {SECRETS_DIR} to the one folder that Connections may refer to"
        raise ConfigError(where, outside, hint=hint)
    return properties


def _object(extra: str | None, where: str, *, hint: str) -> dict[str, Any]:
    from strait.errors import ConfigError
    from strait.json_text import value_of

    try:
        raw: Any = value_of(extra or "{}")
    except ValueError as error:
        raise ConfigError(where, [f"extra is not JSON: {error}"], hint=hint) from None
    if not isinstance(raw, dict):
        raise ConfigError(where, ["extra is not a JSON object"], hint=hint)
    return raw


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)

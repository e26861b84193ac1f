"""Where Airflow finds a link's configuration: the links file, Connections over its clusters, a Variable over its
topics.

`link_names` is cheap and is called whenever the DAG file is parsed. The rest is for tasks and triggers only: it asks
Airflow's database, through Airflow.
"""

import hashlib
import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from strait.config.links import LinksFile, Spark, Topics
    from strait.errors import ConfigError

CONNECTION_PREFIX = "strait_"
VARIABLE_PREFIX = "strait_topics_"
REJECTED_PREFIX = "strait_rejected_"
SECRETS_DIR = "STRAIT_SECRETS_DIR"
"""Environment variable: the folder below which Connections may refer to files."""
_WATCH = "_watch"

PAUSE_DAG, QUARANTINE_DAG = "strait-pause", "strait-quarantine"
FAILOVER_DAG, REHEARSAL_DAG = "strait-failover", "strait-rehearsal"
"""Those that all links share. No link's: theirs begin with `strait_`."""


def links_file() -> Path:
    """``$STRAIT_LINKS_FILE``, else ``links.yaml`` in the project."""
    from strait.embedded.paths import project_root

    return Path(os.environ.get("STRAIT_LINKS_FILE") or project_root() / "links.yaml")


def link_names() -> tuple[str, ...]:
    """The links that get DAGs. What is wrong inside a link is said by its own runs, and hides no other link."""
    from strait.config.links import link_names

    return link_names(links_file())


def links_with_approval() -> frozenset[str]:
    """Those that also get an approval DAG."""
    from strait.config.links import links_with_approval

    return links_with_approval(links_file())


def dag_id(link: str, *suffix: str) -> str:
    """Airflow takes fewer characters than a links file may hold; a link with others fails in its runs."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", "_".join(["strait", link, *suffix]))


def dags_of(link: str, asked: frozenset[str]) -> tuple[str, ...]:
    """The ids of the DAGs that are this link's alone. ``asked``: the links that also get an approval DAG."""
    return dag_id(link), *((dag_id(link, "approval"),) if link in asked else ())


def watch_name(link: str) -> str:
    """The asset that stands for all that the link depends on."""
    return f"{dag_id(link)}{_WATCH}"


def is_watch(asset: str) -> bool:
    """Whether the asset is some link's."""
    return asset.startswith(dag_id("")) and asset.endswith(_WATCH)


def clusters_of(link: str, *, reverse: bool = False) -> "LinksFile":
    """The links file with this link alone, its clusters and its Spark as the Connections have them, its topics as in the file;
    ``reverse``: also with the links that copy the other way."""
    from strait.config.links import load_link, with_origin

    _refuse_shared_dag(link)
    file = load_link(links_file(), link, reverse=reverse)
    found = file.links[link]
    clusters = {}
    for name in (found.source, found.destination):
        over = _connection(name)
        clusters[name] = dict(file.clusters[name]) | over
        if over:
            found = with_origin(found, name, f"Airflow Connection {connection_id(name)}")
    if found.spark.spark_conn_id is not None:
        found = found.model_copy(update={"spark": _spark(found.spark, found.spark.spark_conn_id)})
    return file.model_copy(update={"clusters": clusters, "links": {**file.links, link: found}})


def with_live_topics(file: "LinksFile", link: str) -> "LinksFile":
    """The same with the whitelist of the link's Variable, where there is one. Raises ConfigError for an invalid one."""
    from strait.config.links import with_topics

    topics = _live_topics(link)
    if topics is None:
        return file
    live = with_topics(file.links[link], topics, where=f"Airflow Variable {variable_name(link)}")
    return file.model_copy(update={"links": {**file.links, link: live}})


class LiveSettings(NamedTuple):
    """What a link is configured with. It holds secrets, and its ``digest`` none.

    Attributes:
        digest: another one whenever something is configured differently.
        file: as far as it can be read: with a wrong Variable, the link as the links file has it; None: nothing of it.
        error: what is wrong.
    """

    digest: str
    file: "LinksFile | None" = None
    error: "ConfigError | None" = None


def live_settings(link: str) -> LiveSettings:
    """As the links file, the Connections and the Variables have it now."""
    from strait import __version__
    from strait.errors import ConfigError

    file: LinksFile | None = None
    try:
        file = clusters_of(link)
        live = with_live_topics(file, link)
        found = live.links[link]
        # An approval is asked for anew when what was rejected is deleted. One link ends what removed links have left.
        rejected = _variable(rejected_name(link)) if found.approval == "required" else None
        names = link_names()
        others = names if link == names[0] else ()
    except ConfigError as error:
        return LiveSettings(digest(str(error)), file, error)
    return LiveSettings(digest([__version__, found.model_dump_json(), dict(live.clusters), rejected, others]), live)


def digest(of: Any) -> str:
    """Of anything that is JSON. Keyed, as passwords may be in it: who reads Airflow's database cannot try them out."""
    from airflow.configuration import conf

    key = hashlib.sha256(conf.get("core", "fernet_key", fallback="").encode()).digest()
    text = json.dumps(of, sort_keys=True, default=dict)
    return hashlib.blake2b(text.encode(), key=key, digest_size=12).hexdigest()


def variable_name(link: str) -> str:
    """The Variable whose JSON replaces the `topics` block of the link."""
    return f"{VARIABLE_PREFIX}{link}"


def topics_text(link: str) -> str | None:
    """What the link's Variable holds; None: it has none, and the links file counts."""
    return _variable(variable_name(link))


def rejected_name(link: str) -> str:
    """The Variable that holds which changes of the link were rejected last."""
    return f"{REJECTED_PREFIX}{link}"


def connection_id(cluster: str) -> str:
    """The Connection, of type kafka, whose extra goes over the properties of the cluster."""
    return f"{CONNECTION_PREFIX}{cluster}"


def _refuse_shared_dag(link: str) -> None:
    """Of two links whose DAGs have one id, Airflow would run one link's and say nothing of the other."""
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
    """The `spark` block with what its Connection says. Raises ConfigError, also if there is no such Connection."""
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


def _connection(cluster: str) -> dict[str, str]:
    """librdkafka's properties from the extra of the cluster's Connection; none where there is no such Connection."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        extra = Connection.get(connection_id(cluster)).extra
    except AirflowNotFoundException:
        return {}
    return _properties(extra, connection_id(cluster))


def _properties(extra: str | None, connection: str) -> dict[str, str]:
    """Values are texts in librdkafka; JSON's numbers and booleans are spelt as it wants them."""
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

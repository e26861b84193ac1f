"""The links file: the clusters, the links between them, and the policy of each link.

It is parsed once, on input, into frozen values. Unknown keys are errors, and all problems are reported together.
A cluster's block has librdkafka's own properties, passed through unchanged, so they are not listed here.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from strait.config import client_properties
from strait.config.alerts import Alerts, Notifier
from strait.config.assets import Assets
from strait.config.cluster_identity import expecting
from strait.config.conflicts import heartbeats_in_one_place, one_name_each
from strait.config.consumer_groups import ConsumerGroups
from strait.config.copy_settings import Acls, Configs, ReplicationFactor
from strait.config.failover import Failover, Hook
from strait.config.groups import DEFAULT_GROUP, Backfill, Group
from strait.config.heartbeats import Heartbeats
from strait.config.kubernetes_settings import Kubernetes
from strait.config.outline import links_in
from strait.config.pools import Pool, pool_problems, with_pools
from strait.config.settings import Copies, Name, Settings
from strait.config.spark import Spark, Standalone
from strait.config.start_offset import Start
from strait.config.topics import BackfillBudget, Budget, Naming, NamingRule, Rule, Topics
from strait.config.transform import Fields, Format, Route, Transform, foreign_secrets
from strait.config.validation import did_you_mean, read_yaml, validated
from strait.config.yarn_settings import Yarn
from strait.errors import ConfigError
from strait.json_text import value_of

__all__ = [
    "Acls",
    "Alerts",
    "Backfill",
    "BackfillBudget",
    "Budget",
    "Configs",
    "ConsumerGroups",
    "Failover",
    "Fields",
    "Format",
    "Group",
    "Heartbeats",
    "Hook",
    "Kubernetes",
    "Link",
    "LinksFile",
    "Naming",
    "NamingRule",
    "Notifier",
    "Pool",
    "Route",
    "Rule",
    "Settings",
    "Spark",
    "Standalone",
    "Topics",
    "Transform",
    "Yarn",
    "load",
    "load_link",
    "parse",
    "parse_topics",
    "with_topics",
]


TOPICS = "topics"


def _with_deprecated_names(schema: dict[str, Any]) -> None:
    interval = {key: value for key, value in schema["properties"]["ledger_seconds"].items() if key != "default"}
    told = {"deprecated": True, "description": "Deprecated: use `ledger_seconds`."}
    schema["properties"]["epoch_seconds"] = interval | told


class Link(Settings):
    """One source, one destination, one policy."""

    model_config = ConfigDict(json_schema_extra=_with_deprecated_names)

    source: Name = Field(description="Name of the source cluster.")
    destination: Name = Field(description="Name of the destination cluster.")
    topics: Topics = Field(default_factory=Topics, description="Topics to copy, and the rules for them.")
    naming: Naming = Field(default_factory=Naming, description="Names of destination topics.")
    copies: Copies | None = Field(
        None,
        description="Policy for records that another link wrote to the source: `skip` copies none, `forward` those that did not "
        "originate in the destination, `all` every record. Default: `skip` if destination topics keep their names, else "
        "`forward`.",
    )
    create_topics: bool = Field(
        True,
        description="Create missing destination topics and add missing partitions; false: wait for them.",
    )
    replication_factor: ReplicationFactor | None = Field(
        None,
        description="Replication factor of created topics and state topics; `source`: that of each source topic, and the "
        "broker's default for state topics. Default: the destination broker's.",
        json_schema_extra={"x-shown": "integer, 1 to 32767, or `source`"},
    )
    configs: Configs = Field(
        default_factory=Configs, description="Configurations of destination topics, at creation and later."
    )
    acls: Acls = Field(default_factory=Acls, description="ACLs of destination topics.")
    delete_copies_after_seconds: int | None = Field(
        None,
        ge=0,
        description="Time after which a destination topic is deleted if its source topic no longer exists, in seconds. Default: never.",
    )
    heartbeats: Heartbeats = Field(
        default_factory=Heartbeats, description="Heartbeat records, which distinguish an idle link from a broken one."
    )
    consumer_groups: ConsumerGroups = Field(
        default_factory=ConsumerGroups,
        description="Consumer groups whose translated offsets are committed on the destination.",
    )
    failover: Failover = Field(
        default_factory=Failover, description="Commands and DAGs that are run in failovers of the link."
    )
    alerts: Alerts = Field(
        default_factory=Alerts, description="Notifications that Airflow sends about the link's DAGs."
    )
    assets: Assets = Field(Assets(), description="Assets of Airflow that get an event for each hour of a topic.")
    approval: Literal["none", "required"] = Field(
        "none",
        description="Approval of changes to the plan: `required` applies them only after an operator has approved them.",
    )
    start: Start = Field(
        "earliest", description="Start offset of topics new to the link; a rule's `start` takes precedence."
    )
    groups: Mapping[Name, Group] = Field(
        default_factory=lambda: {DEFAULT_GROUP: Group()}, description="Name -> task group; must contain `default`."
    )
    backfill: Backfill | None = Field(
        None, description="Dedicated task group for partitions with a large lag. Default: none."
    )
    slot_memory_mib: int = Field(
        128, ge=16, le=65536, description="Maximum memory for fetched batches per slot, in MiB."
    )
    ledger_seconds: int = Field(
        3600,
        ge=10,
        le=86400,
        validation_alias=AliasChoices("ledger_seconds", "epoch_seconds"),
        description="Time between two rows of a partition in the replication ledger, in seconds. Each application writes one "
        "file per interval. `epoch_seconds` is a deprecated name of it.",
    )
    spark: Spark = Field(default_factory=Spark, description="Settings of the Spark applications.")
    pool: Annotated[
        Name | None,
        BeforeValidator(
            lambda given: None if given is False else given, json_schema_input_type=Name | Literal[False] | None
        ),
    ] = Field(
        None,
        description="Name of the pool whose Spark application runs the link; false: each task group has its own Spark "
        "application. Default: the pool that is the [default](#pool), else false.",
        json_schema_extra={"x-shown": "string or false"},
    )
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _groups_are_there(self) -> "Link":
        if problems := list(self.group_problems()):
            raise ValueError("\n".join(problems))
        return self

    @property
    def origins(self) -> Mapping[str, str]:
        """Return the origins of parts that are not from the links file: `topics` or a cluster's name -> origin."""
        return self._origins

    def group_problems(self) -> Iterator[str]:
        """Yield a line for each required task group that `groups` lacks. Call it again if `topics` is replaced."""
        if DEFAULT_GROUP not in self.groups:
            yield f"groups: `{DEFAULT_GROUP}` is required, for topics without a rule that names a group"
        named = [(f"topics.rules.{number}.group", rule.group) for number, rule in enumerate(self.topics.rules)]
        named.append(("backfill.group", None if self.backfill is None else self.backfill.group))
        for where, group in named:
            if group is not None and group not in self.groups:
                yield f"{where}: `groups` has no task group {group!r}{did_you_mean(group, self.groups)}"
        for number, rule in enumerate(self.topics.rules if self.pool is not None else ()):
            if rule.transform is not None:
                yield (
                    f"topics.rules.{number}.transform: an application that links share transforms no records; set "
                    "`pool: false` for the link"
                )
        if self.topics.budget.backfill is not None and self.backfill is None:
            yield "topics.budget.backfill: the link has no `backfill`, so no task group that it limits"

    @property
    def keeps_names(self) -> bool:
        """Return whether every destination topic has the name of its source topic."""
        namings = [self.naming, *(rule.naming for rule in self.topics.rules if rule.naming is not None)]
        return all(naming.policy == "identity" for naming in namings)


class LinksFile(Settings):
    """All clusters and all links."""

    clusters: Mapping[Name, Mapping[str, str]] = Field(
        repr=False,  # they may hold passwords
        description="Cluster name -> librdkafka properties (`bootstrap.servers`, `security.protocol`, …).",
    )
    links: Mapping[Name, Link] = Field(description="Link name -> its settings.")
    pools: Mapping[Name, Pool] = Field(
        default_factory=dict, description="Pool name -> settings of a Spark application that several links share."
    )

    @model_validator(mode="after")
    def _links_fit_clusters(self) -> "LinksFile":
        problems = []
        for name, properties in self.clusters.items():
            if not properties.get("bootstrap.servers"):
                problems.append(f"clusters.{name}: `bootstrap.servers` is required")
            problems += (f"clusters.{name}: {problem}" for problem in client_properties.problems(properties))
        for name, link in self.links.items():
            problems += _unknown_clusters(name, {"source": link.source, "destination": link.destination}, self.clusters)
            if link.source == link.destination and link.keeps_names:
                problems.append(
                    f"links.{name}: source and destination are both {link.source!r} with unchanged topic names, "
                    "so each topic would be copied onto itself; set a prefix or suffix in `naming`"
                )
        problems += pool_problems(self.links, self.pools)
        problems += heartbeats_in_one_place(self.links)
        problems += one_name_each({name: link.groups for name, link in self.links.items()})
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def members(self, pool: str) -> tuple[str, ...]:
        """Return the names of the links that run in a pool, sorted."""
        return tuple(sorted(name for name, link in self.links.items() if link.pool == pool))


def load(path: Path) -> LinksFile:
    """Read and validate a links file, YAML or JSON.

    Raises:
        ConfigError: it cannot be read or is invalid; the error lists every problem.
    """
    return parse(read_yaml(path, f"links file {path}"), where=f"links file {path}")


def load_link(path: Path, link: str, *, reverse: bool = False, beside: bool = False) -> LinksFile:
    """Read one link and its clusters; errors in another link or cluster are ignored. Raises ConfigError.

    Args:
        reverse: also read the links in the opposite direction.
        beside: also read the valid links from the same source, with their clusters.
    """
    raw = read_yaml(path, f"links file {path}")
    links = links_in(raw, path)
    if link not in links:
        raise ConfigError(f"links file {path}", [f"`links` has no link {link!r}{did_you_mean(link, links)}"])
    wanted = {
        name: links[name] for name in links if name == link or (reverse and _is_reverse(links[name], links[link]))
    }
    found = parse(raw | {"links": wanted} | _clusters_of(links[link], raw), where=f"links file {path}")
    given = {name: one.get("groups") for name, one in links.items() if isinstance(one, dict)}
    groups = {name: some if isinstance(some, dict) else (DEFAULT_GROUP,) for name, some in given.items()}
    if problems := [problem for problem in one_name_each(groups) if problem.startswith(f"links.{link}.")]:
        raise ConfigError(f"links file {path}", problems)
    return _with_others(found, link, raw, links) if beside else found


def _with_others(found: LinksFile, link: str, raw: dict[str, Any], links: Mapping[Any, Any]) -> LinksFile:
    source = found.links[link].source
    for name, other in links.items():
        if name not in found.links and isinstance(other, dict) and other.get("source") == source:
            with contextlib.suppress(ConfigError):  # it concerns the other link
                more = parse({**raw, "links": {name: other}, **_clusters_of(other, raw)}, where="")
                merged = {"links": {**found.links, **more.links}, "clusters": {**more.clusters, **found.clusters}}
                found = found.model_copy(update=merged)
    return found


def _is_reverse(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return (one.get("source"), one.get("destination")) == (other.get("destination"), other.get("source"))


def _clusters_of(link: Any, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a `clusters` block with the link's two clusters; an empty object if it names an unknown one.

    The caller then keeps all clusters, so that the error can suggest the nearest name.
    """
    clusters = raw.get("clusters")
    ends = [link.get("source"), link.get("destination")] if isinstance(link, dict) else []
    if not isinstance(clusters, dict) or not all(isinstance(end, str) and end in clusters for end in ends):
        return {}
    return {"clusters": {name: clusters[name] for name in clusters if name in ends}}


def pool_of(file: LinksFile, name: str, where: str) -> Pool:
    """Return a pool. Raises ConfigError if the file has none of this name."""
    if name not in file.pools:
        raise ConfigError(where, [f"`pools` has no pool {name!r}{did_you_mean(name, file.pools)}"])
    return file.pools[name]


def parse(raw: Any, *, where: str) -> LinksFile:
    """Validate the content of a links file. Raises ConfigError with every problem."""
    try:
        return validated(LinksFile, with_pools(raw), where)
    except ConfigError as error:  # the model checks references only if each single value is valid
        names = [problem for problem in _names_that_lead_nowhere(raw) if problem not in error.problems]
        raise ConfigError(where, [*error.problems, *names], hint=error.hint) from None


def _names_that_lead_nowhere(raw: Any) -> Iterator[str]:
    clusters, links = (raw.get(key) if isinstance(raw, dict) else None for key in ("clusters", "links"))
    if isinstance(clusters, dict) and isinstance(links, dict):
        for name, link in links.items():
            if isinstance(link, dict):
                yield from _unknown_clusters(name, link, {str(cluster): None for cluster in clusters})


def _unknown_clusters(name: str, link: Mapping[str, Any], clusters: Mapping[str, Any]) -> Iterator[str]:
    for end in ("source", "destination"):
        cluster = link.get(end)
        if isinstance(cluster, str) and cluster not in clusters:
            yield f"links.{name}.{end}: `clusters` has no cluster {cluster!r}{did_you_mean(cluster, clusters)}"


def with_topics(link: Link, topics: Topics, *, where: str) -> Link:
    """Return the link with another ``topics`` block, from elsewhere than its links file. Raises ConfigError if it names
    task groups that the link lacks, or secrets that the links file does not give to the link."""
    changed = link.model_copy(update={"topics": topics})
    given, own = ([rule.transform for rule in each.rules] for each in (topics, link.topics))
    if problems := [*changed.group_problems(), *foreign_secrets(given, own)]:
        raise ConfigError(where, problems)
    return with_origin(changed, TOPICS, where)


def with_known(file: LinksFile, ids: Mapping[str, str]) -> LinksFile:
    """Return the file with these expected cluster IDs (name -> Kafka's ID); an ID in the file takes precedence."""
    clusters = {name: expecting(properties, ids.get(name, "")) for name, properties in file.clusters.items()}
    return file.model_copy(update={"clusters": clusters})


def with_origin(link: Link, what: str, where: str) -> Link:
    """Return the link with the origin of one of its parts; see `Link.origins`."""
    changed = link.model_copy()
    changed._origins = {**link.origins, what: where}  # noqa: SLF001  set here alone
    return changed


def parse_topics(text: str, *, where: str) -> Topics:
    """Validate a ``topics`` block given as JSON text, such as that of the Airflow Variable. Raises ConfigError."""
    try:
        raw = value_of(text)
    except ValueError as error:
        raise ConfigError(where, [f"is not JSON: {error}"]) from error
    return validated(Topics, raw, where)

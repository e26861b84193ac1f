"""The links file: which clusters there are, which links run between them, under which policy.

Parsed once, at the edge, into frozen values. Unknown keys are errors, and every problem is reported in one go.
A cluster's block is librdkafka's own properties, passed through untouched, so it is not listed here.
"""

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from strait.errors import ConfigError

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"
Model = TypeVar("Model", bound=BaseModel)


def _regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


Name = Annotated[str, Field(pattern=NAME)]
TopicName = Annotated[str, Field(pattern=TOPIC_NAME)]
Regex = Annotated[str, AfterValidator(_regex)]


class Settings(BaseModel):
    """Base of every configuration block: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Topics(Settings):
    """Which source topics a link copies. This block may be replaced live by the link's Airflow Variable."""

    include: tuple[TopicName, ...] = Field((), description="Exact topic names.")
    regex: tuple[Regex, ...] = Field((), description="Regular expressions; each must match a whole topic name.")
    exclude: tuple[Regex, ...] = Field((), description="Regular expressions; what one matches whole is left out.")


class Naming(Settings):
    """How a copy is called on the destination."""

    policy: Literal["identity", "prefix", "suffix"] = Field("identity", description="How destination names are made.")
    prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$", description="Put before the name, with policy `prefix`.")
    suffix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$", description="Put behind the name, with policy `suffix`.")

    @model_validator(mode="after")
    def _affix_belongs_to_policy(self) -> "Naming":
        for affix in ("prefix", "suffix"):
            given = bool(getattr(self, affix))
            if given != (self.policy == affix):
                raise ValueError(f"policy {self.policy!r} {'does not take' if given else 'needs'} `{affix}`")
        return self


class Group(Settings):
    """One task group: the topics of a link that share one Spark application."""

    slots: int = Field(1, ge=1, le=1024, description="Long-running Spark tasks; each needs a core.")


class Spark(Settings):
    """Where and how the applications of a link run."""

    master: str = Field(
        "local",
        pattern=r"^(local|spark://\S+)$",
        description="`local` (one JVM beside its submitter) or the URL of a Spark Standalone master.",
    )
    driver_memory: str = Field("512m", pattern=r"^\d+[mg]$", description="Heap of the driver's JVM.")
    conf: Mapping[str, str] = Field(default_factory=dict, description="Further Spark properties, passed through.")


class Link(Settings):
    """One source, one destination, one policy."""

    source: Name = Field(description="Name of the source cluster.")
    destination: Name = Field(description="Name of the destination cluster.")
    topics: Topics = Field(default_factory=Topics, description="Which topics are copied.")
    naming: Naming = Field(default_factory=Naming, description="How copies are called.")
    create_topics: bool = Field(True, description="Create missing destination topics; false: wait for them.")
    replication_factor: int | None = Field(
        None, ge=1, le=32767, description="Of created topics and of state topics. Default: the destination broker's."
    )
    start: Literal["earliest", "latest"] = Field("earliest", description="Where a topic new to the link begins.")
    groups: Mapping[Name, Group] = Field(
        default_factory=lambda: {"default": Group()}, description="Task groups by name. Now: only `default`."
    )
    slot_memory_mib: int = Field(
        128, ge=16, le=65536, description="Memory that one slot may fill with fetched batches."
    )
    epoch_seconds: int = Field(300, ge=1, le=86400, description="How often the ledger gets a row for each partition.")
    spark: Spark = Field(default_factory=Spark, description="Where the applications run.")

    @model_validator(mode="after")
    def _only_the_default_group(self) -> "Link":
        if set(self.groups) != {"default"}:
            raise ValueError("groups: exactly one group, named `default`, is supported")
        return self


class LinksFile(Settings):
    """All clusters and all links."""

    clusters: Mapping[Name, Mapping[str, str]] = Field(
        description="Cluster name -> librdkafka properties (`bootstrap.servers`, `security.protocol`, …)."
    )
    links: Mapping[Name, Link] = Field(description="Link name -> link.")

    @model_validator(mode="after")
    def _links_fit_clusters(self) -> "LinksFile":
        problems = []
        for name, properties in self.clusters.items():
            if not properties.get("bootstrap.servers"):
                problems.append(f"clusters.{name}: `bootstrap.servers` is required")
        for name, link in self.links.items():
            problems += [
                f"links.{name}.{end}: no cluster is called {cluster!r}{did_you_mean(cluster, self.clusters)}"
                for end, cluster in (("source", link.source), ("destination", link.destination))
                if cluster not in self.clusters
            ]
            if link.source == link.destination and link.naming.policy == "identity":
                problems.append(
                    f"links.{name}: source and destination are both {link.source!r} and names stay the same, "
                    "so each topic would be copied onto itself; give `naming` a prefix or suffix"
                )
        if problems:
            raise ValueError("\n".join(problems))
        return self


def did_you_mean(word: str, known: Any) -> str:
    """``; did you mean 'x'?`` for the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def load(path: Path) -> LinksFile:
    """Read and check a links file, YAML or JSON.

    Raises:
        ConfigError: it cannot be read or is wrong; every problem is in it.
    """
    return parse(_read(path), where=f"links file {path}")


def load_link(path: Path, link: str) -> LinksFile:
    """Read one link and the clusters; a mistake in another link of the file does not matter. Raises ConfigError."""
    raw = _read(path)
    links = _links(raw, path)
    if link not in links:
        raise ConfigError(f"links file {path}", [f"links: no link is called {link!r}{did_you_mean(link, links)}"])
    return parse(raw | {"links": {link: links[link]}}, where=f"links file {path}")


def link_names(path: Path) -> tuple[str, ...]:
    """The names of all links, sorted; what is said about them is not checked. Raises ConfigError."""
    return tuple(sorted(str(name) for name in _links(_read(path), path)))


def _links(raw: Any, path: Path) -> dict[Any, Any]:
    links = raw.get("links") if isinstance(raw, dict) else None
    if not isinstance(links, dict):
        raise ConfigError(f"links file {path}", ["needs an object `links`, with the name of each link as its keys"])
    return links


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"links file {path}", [f"cannot be read: {error.strerror}"], hint="name an existing file"
        ) from error
    try:
        return yaml.load(text, Loader=_UniqueKeys)  # noqa: S506  a SafeLoader that also refuses doubled keys
    except yaml.YAMLError as error:
        raise ConfigError(f"links file {path}", [f"is neither YAML nor JSON: {_one_line(error)}"]) from error


def parse(raw: Any, *, where: str) -> LinksFile:
    """Check what a links file holds. Raises ConfigError with every problem."""
    return _validated(LinksFile, raw, where)


def parse_topics(text: str, *, where: str) -> Topics:
    """Check a ``topics`` block given as JSON text, as the Airflow Variable holds it. Raises ConfigError."""
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(where, [f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}"]) from error
    return _validated(Topics, raw, where)


def _validated(model: type[Model], raw: Any, where: str) -> Model:
    if not isinstance(raw, dict):
        raise ConfigError(
            where, [f"must be an object with keys {sorted(model.model_fields)}, not {type(raw).__name__}"]
        )
    try:
        # Through JSON: strict mode then takes lists for tuples, as a file gives them, and nothing else.
        return model.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise ConfigError(where, [line for item in error.errors() for line in _explain(model, item)]) from None
    except TypeError as error:  # YAML knows types that JSON does not, such as dates
        raise ConfigError(where, [f"holds a value that JSON cannot: {error}"], hint="put it in quotes") from None


def _explain(model: type[BaseModel], item: Any) -> list[str]:
    """One line for each problem in one of pydantic's error items, with where it is and a near name if misspelt."""
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        *parents, key = item["loc"]
        return [f"{path}: unknown key{did_you_mean(str(key), _keys_at(model, parents))}"]
    message = item["msg"].removeprefix("Value error, ")
    return [f"{path}: {line}" if path else line for line in message.splitlines()]


def _keys_at(model: type[BaseModel], path: list[Any]) -> list[str]:
    """The keys that the block at ``path`` takes: fields are walked, a mapping's own key is stepped over."""
    current: Any = model
    for part in path:
        if isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = current.model_fields[part].annotation
        if getattr(current, "__origin__", None) is not None and part not in ("clusters", "links", "groups"):
            current = current.__args__[-1]
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets the second of two equal keys win in silence; a links file may not."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""The blocks of a link for the selection of its topics, their settings and their destination names."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from strait.config.copy_settings import Overrides, check_overrides
from strait.config.hours import Hours, Span, Zone
from strait.config.settings import (
    Affix,
    Copies,
    Name,
    Regex,
    Settings,
    TopicName,
)
from strait.config.start_offset import Start, Until
from strait.config.topic_names import check_name, check_replacement
from strait.config.transform import Transform
from strait.config.validation import did_you_mean


class NamingRule(Settings):
    """The destination names of the topics that the rule matches."""

    match: Regex = Field(description="A regular expression; it must match the whole name of a source topic.")
    replace: str = Field(
        min_length=1,
        description="Name of the destination topic; `\\1` or `\\g<name>` insert the text of a capturing group.",
    )

    @model_validator(mode="after")
    def _replacement_fits(self) -> "NamingRule":
        check_replacement(self.match, self.replace)
        return self


class Naming(Settings):
    """Names of destination topics."""

    policy: Literal["identity", "prefix", "suffix", "alias", "rules"] = Field(
        "identity", description="Method that derives the destination topic's name from the source topic's."
    )
    prefix: Affix = Field("", description="Prefix of the name, with policy `prefix`.")
    suffix: Affix = Field("", description="Suffix of the name, with policy `suffix`.")
    alias: Affix | None = Field(
        None,
        description="Alias before the separator and the name, with policy `alias`. Default: the name of the source cluster.",
    )
    separator: Affix = Field(".", min_length=1, description="Separator between alias and name, with policy `alias`.")
    destination_alias: Affix | None = Field(
        None,
        description="Alias of the destination, with policy `alias`: topics that start with it came from there and are not "
        "copied. Default: the name of the destination cluster.",
    )
    rules: tuple[NamingRule, ...] = Field(
        (), description="Naming rules, with policy `rules`; the first that matches applies."
    )
    otherwise: Literal["identity", "refuse"] = Field(
        "identity",
        description="Fallback if no naming rule matches: `identity` keeps the name, `refuse` does not copy the topic.",
    )

    @model_validator(mode="after")
    def _keys_belong_to_policy(self) -> "Naming":
        problems = [
            f"policy {self.policy!r} does not use `{key}`"
            for key, policy in _KEYS.items()
            if policy != self.policy and getattr(self, key) != type(self).model_fields[key].default
        ]
        if self.policy in ("prefix", "suffix", "rules") and not getattr(self, self.policy):
            problems.append(f"policy {self.policy!r} needs `{self.policy}`")
        if problems:
            raise ValueError("\n".join(problems))
        return self


_KEYS = {
    "prefix": "prefix",
    "suffix": "suffix",
    "alias": "alias",
    "separator": "alias",
    "destination_alias": "alias",
    "rules": "rules",
    "otherwise": "rules",
}
"""Each key that only one policy uses -> that policy."""


class Rule(Settings):
    """How the topics that the rule matches are copied."""

    match: Regex = Field(description="A regular expression; it must match the whole name of a source topic.")
    start: Start | None = Field(
        None, description="Start offset of a topic new to the link. Default: the link's `start`."
    )
    until: Until | None = Field(
        None,
        description="End of replication: source records from that time or offset on are not copied. Default: it has no end.",
    )
    on_loss: Literal["halt", "continue", "restart"] = Field(
        "halt",
        description="Action if records were lost, or a topic was deleted and recreated: `halt` waits for an operator, "
        "`continue` skips the lost records, `restart` copies again.",
    )
    on_foreign: Literal["halt", "continue", "expect"] = Field(
        "halt",
        description="Action if another producer writes to the destination topic: `halt` waits for an operator, `continue` "
        "accepts and logs the foreign records, `expect` accepts them because other producers are intended.",
    )
    copies: Copies | None = Field(None, description="Override of the link's `copies`. Default: the link's.")
    on_refused: Literal["halt", "quarantine"] = Field(
        "halt",
        description="Action for a record that the destination rejects: `halt` stops the partition there, `quarantine` "
        "writes it to the quarantine and continues.",
    )
    compression: Literal["source", "none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "source", description="Codec of batches that are rebuilt or merged; all others keep the producer's."
    )
    group: Name | None = Field(None, description="Task group that copies the topic. Default: `default`.")
    naming: Naming | None = Field(None, description="Override of the link's `naming`. Default: the link's.")
    create: bool | None = Field(
        None, description="Create the destination topic if it is missing. Default: the link's `create_topics`."
    )
    sync_configs: bool | None = Field(None, description="Override of `configs.sync`. Default: the link's.")
    overrides: Overrides = Field(
        default_factory=dict,
        description="Configuration name -> value for these destination topics; takes precedence over `configs.overrides`.",
    )
    sync_acls: bool | None = Field(None, description="Override of `acls.sync`. Default: the link's.")
    topic_class: Name | None = Field(
        None,
        alias="class",
        description="Class of the topic in `budget.classes`, whose budget applies in addition to the link's.",
    )

    transform: Transform | None = Field(
        None,
        description="Filter and change records on the way, by expressions of Spark SQL. Default: they are copied as they are.",
    )

    @model_validator(mode="after")
    def _timestamps_stay(self) -> "Rule":
        check_overrides(self.overrides)
        return self

    @model_validator(mode="after")
    def _transformed_alone(self) -> "Rule":
        if self.transform is not None and self.on_foreign != "halt":
            raise ValueError("transform: needs `on_foreign: halt`; transformed records must be alone in their topic")
        return self

    @model_validator(mode="after")
    def _routes_fit(self) -> "Rule":
        routes = () if self.transform is None else self.transform.route
        if routes and self.naming is not None:
            raise ValueError(
                "naming: does not apply to a rule with `transform.route`, whose routes name the destination topics"
            )
        for route in routes:
            check_name(self.match, route.to)
        return self


class BackfillBudget(Settings):
    """Limits of the backfill task group, in addition to those of the link and of its topics' classes."""

    bytes_per_second: int | None = Field(
        None,
        ge=1,
        description="Maximum throughput of the backfill task group, in bytes per second. Default: unlimited.",
    )
    hours: tuple[Span, ...] = Field(
        (),
        max_length=24,
        description="Hours of the day in which the backfill task group copies, such as `22:00-06:00`. Default: always.",
    )
    timezone: Zone | None = Field(
        None, description="IANA name of the time zone of `hours`, such as `Europe/Berlin`. Required with `hours`."
    )

    @model_validator(mode="after")
    def _hours_have_a_zone(self) -> "BackfillBudget":
        if bool(self.hours) != (self.timezone is not None):
            raise ValueError("`hours` and `timezone` belong together: set both or neither")
        if not self.hours and self.bytes_per_second is None:
            raise ValueError("set `bytes_per_second`, `hours` or both")
        return self

    @property
    def opening(self) -> Hours | None:
        """Return the hours; None: it always copies."""
        return Hours(self.hours, self.timezone) if self.timezone is not None else None


class Budget(Settings):
    """Maximum throughput of a link, in bytes per second on the wire."""

    bytes_per_second: int | None = Field(
        None, ge=1, description="Maximum throughput of the whole link, in bytes per second. Default: unlimited."
    )
    classes: Mapping[Name, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description="Class name -> maximum throughput of all its topics together, in bytes per second.",
    )
    backfill: BackfillBudget | None = Field(
        None, description="Limits of the backfill task group: a throughput, or hours of the day. Default: none."
    )


class Topics(Settings):
    """Which source topics a link copies, and how. The link's Airflow Variable may replace this block while it runs."""

    include: tuple[TopicName, ...] = Field((), description="Exact topic names.")
    regex: tuple[Regex, ...] = Field((), description="Regular expressions; each must match a whole topic name.")
    exclude: tuple[Regex, ...] = Field(
        (), description="Regular expressions; a topic whose whole name matches one is not copied."
    )
    internal: bool = Field(
        False, description="Copy selected topics also if they are MirrorMaker 2's internal topics or start with a dot."
    )
    allow_empty: bool = Field(
        False,
        description="Permit settings that select no topic. Otherwise a change that deselects every topic is an error, and the "
        "current plan stays active.",
    )
    rules: tuple[Rule, ...] = Field((), description="Settings per topic; the first rule that matches applies.")
    budget: Budget = Field(default_factory=Budget, description="Maximum throughput.")

    @model_validator(mode="after")
    def _classes_have_budgets(self) -> "Topics":
        problems = [
            f"rules.{number}.class: budget.classes has no class {rule.topic_class!r}"
            f"{did_you_mean(rule.topic_class, self.budget.classes)}"
            for number, rule in enumerate(self.rules)
            if rule.topic_class is not None and rule.topic_class not in self.budget.classes
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

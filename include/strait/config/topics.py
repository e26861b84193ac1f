"""The blocks of a link that say which topics are copied, how, and under which names."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from strait.config.copy_settings import Overrides, check_overrides
from strait.config.settings import (
    Affix,
    Copies,
    Name,
    Regex,
    Settings,
    TopicName,
    check_replacement,
)
from strait.config.start_offset import Start
from strait.config.validation import did_you_mean


class NamingRule(Settings):
    """How the topics are called that it matches."""

    match: Regex = Field(description="A regular expression; it must match the whole name of a source topic.")
    replace: str = Field(
        min_length=1, description="The copy's name; `\\1` or `\\g<name>` stand for what a group matched."
    )

    @model_validator(mode="after")
    def _replacement_fits(self) -> "NamingRule":
        check_replacement(self.match, self.replace)
        return self


class Naming(Settings):
    """How a copy is called on the destination."""

    policy: Literal["identity", "prefix", "suffix", "alias", "rules"] = Field(
        "identity", description="How destination names are made."
    )
    prefix: Affix = Field("", description="Put before the name, with policy `prefix`.")
    suffix: Affix = Field("", description="Put behind the name, with policy `suffix`.")
    alias: Affix | None = Field(
        None, description="Put before the name and the separator, with policy `alias`. Default: the source's name."
    )
    separator: Affix = Field(".", min_length=1, description="Between alias and name, with policy `alias`.")
    destination_alias: Affix | None = Field(
        None,
        description="With policy `alias`: a topic is not copied whose name has this alias in front, since it came from "
        "there. Default: the destination's name.",
    )
    rules: tuple[NamingRule, ...] = Field((), description="With policy `rules`: the first that matches makes the name.")
    otherwise: Literal["identity", "refuse"] = Field(
        "identity", description="With policy `rules`, where none matches: the same name, or the topic is not copied."
    )

    @model_validator(mode="after")
    def _keys_belong_to_policy(self) -> "Naming":
        problems = [
            f"policy {self.policy!r} does not take `{key}`"
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
"""Each key that belongs to one policy alone."""


class Rule(Settings):
    """How the topics are copied that it matches."""

    match: Regex = Field(description="A regular expression; it must match the whole name of a source topic.")
    start: Start | None = Field(None, description="Where the topic begins. Default: the link's `start`.")
    on_loss: Literal["halt", "continue", "restart"] = Field(
        "halt", description="What to do where records are gone, or a topic was deleted and created again."
    )
    on_foreign: Literal["halt", "continue", "expect"] = Field(
        "halt",
        description="What to do where somebody else writes into the copy; `expect`: others write there by design.",
    )
    copies: Copies | None = Field(None, description="As the link's `copies`. Default: the link's.")
    on_refused: Literal["halt", "quarantine"] = Field(
        "halt", description="What to do with a record that the destination refuses."
    )
    compression: Literal["source", "none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "source", description="Of batches that have to be rebuilt or are merged; others are never touched."
    )
    group: Name | None = Field(None, description="Task group that copies the topic. Default: `default`.")
    naming: Naming | None = Field(None, description="How the copy is called. Default: the link's `naming`.")
    create: bool | None = Field(
        None, description="Create the destination topic where it is missing. Default: the link's `create_topics`."
    )
    sync_configs: bool | None = Field(None, description="As `configs.sync`. Default: the link's.")
    overrides: Overrides = Field(
        default_factory=dict, description="As `configs.overrides`, for these copies; laid over the link's."
    )
    sync_acls: bool | None = Field(None, description="As `acls.sync`. Default: the link's.")
    topic_class: Name | None = Field(
        None, alias="class", description="Which of `budget.classes` the topic counts towards, besides the link's."
    )

    @model_validator(mode="after")
    def _timestamps_stay(self) -> "Rule":
        check_overrides(self.overrides)
        return self


class Budget(Settings):
    """How many bytes a second a link may write, as they are on the wire."""

    bytes_per_second: int | None = Field(None, ge=1, description="Of the whole link. Default: no limit.")
    classes: Mapping[Name, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Name of a class of topics -> its bytes per second, all its topics together."
    )


class Topics(Settings):
    """Which source topics a link copies, and how. This block may be replaced live by the link's Airflow Variable."""

    include: tuple[TopicName, ...] = Field((), description="Exact topic names.")
    regex: tuple[Regex, ...] = Field((), description="Regular expressions; each must match a whole topic name.")
    exclude: tuple[Regex, ...] = Field((), description="Regular expressions; what one matches whole is left out.")
    internal: bool = Field(
        False, description="Also copy selected topics of MirrorMaker 2's own, and those whose names begin with a dot."
    )
    rules: tuple[Rule, ...] = Field((), description="How topics are copied; the first that matches counts.")
    budget: Budget = Field(default_factory=Budget, description="How fast they are copied at most.")

    @model_validator(mode="after")
    def _classes_have_budgets(self) -> "Topics":
        problems = [
            f"rules.{number}.class: no budget.classes is called {rule.topic_class!r}"
            f"{did_you_mean(rule.topic_class, self.budget.classes)}"
            for number, rule in enumerate(self.rules)
            if rule.topic_class is not None and rule.topic_class not in self.budget.classes
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

"""The rules for texts that a machine can check: of reason codes and configuration descriptions, docstrings and
comments."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from strait.config import links
from strait.config.app_spec import AppSpec
from strait.reasons import Kind, Reason
from support.checks import each
from support.prose import texts_of

ROOT = Path(__file__).parents[2]

BANNED = (
    "somebody|someone|nobody|whoever|whatever|wherever|anew|afresh|for ever|goes on|go on|going on|by itself|"
    "kept aside|put aside|left out|let go|in force|say|says|told|tells|looks?|found out|find out|refuse[sd]?|rights?|"
    "the copy|a copy|copies are|begins?|gone|stands?|lane|folder|behind|trouble|decides?|a person|people|"
    "of its own|so (?:long|many|old)|at once|(?<!determine )where|what|who|docs/\\S+"
)
BRITISH = r"\w+isation|\w+ise[ds]?\b|\w+yse[ds]?\b|colour|behaviour|licence|cancell|time-out"
_ALLOWED = {"otherwise", "raise", "raises", "raised", "advertise", "advertised", "precise", "exercise", "cancelled"}
PREPOSITIONS = ("As", "At", "Before", "Behind", "Between", "By", "For", "From", "In", "Of", "On", "To", "Where", "With")
PROSE = re.compile(r"``[^`]*``|`[^`]*`")

# A command, a setting with or without a value, an ACL, or the statement that none is needed.
ACTION = re.compile(r"`[^`]+`|\b(?:READ|WRITE|CREATE|ALTER|DESCRIBE|DESCRIBE_CONFIGS)\b|^No action is needed\.")


def descriptions() -> Iterator[tuple[str, str]]:
    for block in (*links.Settings.__subclasses__(), AppSpec):
        for name, field in block.model_fields.items():
            if block is not AppSpec or field.description:
                yield f"{block.__name__}.{name}", field.description or ""


def offences(text: str) -> list[str]:
    """Words that a reader must decode, outside of what can be typed."""
    prose = PROSE.sub("``", text)
    found = [match[0] for match in re.finditer(rf"\b(?:{BANNED})(?!\w)", prose, re.IGNORECASE)]
    spelt = [match[0] for match in re.finditer(BRITISH, prose, re.IGNORECASE)]
    return found + [word for word in spelt if word.lower() not in _ALLOWED]


DESCRIPTIONS = dict(descriptions())
CODE = [path for folder in ("include/strait", "plugins", "dags") for path in (ROOT / folder).rglob("*.py")]


@each(DESCRIPTIONS)
def test_a_description_starts_with_a_noun_or_a_verb_in_plain_words(name: str) -> list[str]:
    text = DESCRIPTIONS[name]
    return [*_form(text, PREPOSITIONS), *offences(text)]


@each(name for name in DESCRIPTIONS if name.endswith(("_seconds", "_mib", "bytes_per_second")))
def test_a_quantity_has_its_unit(name: str) -> str:
    found = re.search(r"seconds|MiB|bytes|throughput", DESCRIPTIONS[name], re.IGNORECASE)
    return "" if found else DESCRIPTIONS[name]


@each(Reason)
def test_a_reason_reads_as_an_observation_and_an_action(reason: Reason) -> list[str]:
    return [
        fault
        for text in (reason.meaning, reason.remedy)
        for fault in [*_form(text, [word for word in PREPOSITIONS if word != "To"]), *offences(text)]
    ]


@each(Reason)
def test_a_remedy_names_an_action_that_is_possible(reason: Reason) -> str:
    return "" if ACTION.search(reason.remedy) else reason.remedy


@each(reason for reason in Reason if "Airflow" in reason.remedy or "DAG" in reason.remedy)
def test_a_remedy_does_not_assume_airflow(reason: Reason) -> str:
    return "" if "`strait run`" in reason.remedy else reason.remedy


@each(reason for reason in Reason if reason.kind is Kind.RETRIES)
def test_a_remedy_says_how_copying_resumes(reason: Reason) -> str:
    automatic = r"automatically|resumes|takes over|restarts|starts? as soon"
    return "" if re.search(automatic, reason.remedy) else reason.remedy


@each(CODE)
def test_docstrings_and_comments_are_in_plain_words(path: Path) -> list[str]:
    return [f"{line}: {', '.join(found)}" for line, text in texts_of(path) if (found := offences(text))]


def _form(text: str, forbidden: Iterable[str]) -> list[str]:
    """Texts are sentences that do not start with a preposition."""
    return [*([] if text.endswith(".") else ["no full stop"]), *(word for word in forbidden if text.split()[0] == word)]

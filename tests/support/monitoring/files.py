"""What docs/monitoring holds, as data."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from strait.exporter.metrics import LINKS
from strait.exporter.place_metrics import PLACES
from strait.exporter.rendering import AGE, LEFT_OUT, UP
from support.doc_tables import ROOT

RULES = ROOT / "docs" / "monitoring" / "strait-alerts.yml"
DASHBOARD = ROOT / "docs" / "monitoring" / "strait-dashboard.json"


def rule_file() -> dict[str, Any]:
    """As it is."""
    found: dict[str, Any] = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return found


def alerts() -> dict[str, dict[str, Any]]:
    """Name -> its rule."""
    return {rule["alert"]: rule for group in rule_file()["groups"] for rule in group["rules"]}


def panels() -> dict[str, list[str]]:
    """Title -> its queries, with Grafana's variables as it sets them when all links are shown."""
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return {
        panel["title"]: [_filled(target["expr"]) for target in panel["targets"]]
        for panel in found
        if panel["type"] != "row"
    }


def _filled(query: str) -> str:
    for variable, value in {"$link": ".*", "$__rate_interval": "1m", "$__interval": "1m"}.items():
        query = query.replace(variable, value)
    return query


def exported() -> Mapping[str, frozenset[str]]:
    """Sample name -> its labels, of all that `strait exporter` exports under Strait's own names."""
    found: dict[str, frozenset[str]] = {}
    for name, _ in (UP, AGE, LEFT_OUT):
        found[name] = frozenset({"link"})
    for family in LINKS:
        labels = frozenset({"link", *family.labels})
        if family.kind == "histogram":
            found |= {f"{family.name}_bucket": labels | {"le"}, f"{family.name}_sum": labels}
            found[f"{family.name}_count"] = labels
        else:
            found[f"{family.name}_total" if family.kind == "counter" else family.name] = labels
    for place in PLACES:
        found[f"{place.name}_total" if place.kind == "counter" else place.name] = frozenset({"link", "group", "topic"})
    return found


def metrics_of(query: str) -> set[str]:
    """Strait's metrics that a query names."""
    return set(re.findall(r"\bstrait_[a-z_]+", query))


def labels_of(query: str) -> set[str]:
    """Labels that a query matches or sums by."""
    matched = re.findall(r"(\w+)\s*(?:=~|!~|!=|=(?!=))\s*\"", query)
    grouped = re.findall(r"\b(?:by|on|ignoring)\s*\(([^)]*)\)", query)
    return {*matched, *(label.strip() for each in grouped for label in each.split(",") if label.strip())}

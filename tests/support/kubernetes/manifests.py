"""The manifests that the how-to page tells readers to apply, and how they are applied."""

import re
from typing import Any

import yaml
from kubernetes import client, utils

from support.doc_tables import ROOT

PAGE = ROOT / "docs" / "how-to" / "run-on-kubernetes.md"
NAMESPACE = "strait"


def documented() -> list[dict[str, Any]]:
    """In the page's order."""
    blocks = re.findall(r"```yaml\n(apiVersion:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [manifest for block in blocks for manifest in yaml.safe_load_all(block)]


def apply(api: client.ApiClient) -> None:
    for manifest in documented():
        utils.create_from_dict(api, manifest)

"""The manifests that docs/how-to/run-on-kubernetes.md tells readers to apply."""

import yaml

from kubernetes import client, utils
from support.doc_tables import ROOT

FILE = ROOT / "docker" / "kubernetes.yaml"
NAMESPACE = "strait"


def apply(api: client.ApiClient) -> None:
    for manifest in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        utils.create_from_dict(api, manifest)

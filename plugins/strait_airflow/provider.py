"""The entry of the package `airflow-provider-strait`, which holds this plugin, in Airflow's list of providers.

A checkout and the package `strait` alone have no such entry.
"""

from typing import Any

_MODULES = {
    "hooks": ["strait_airflow.hook"],
    "sensors": ["strait_airflow.sensors"],
    "operators": ["strait_airflow.operators"],
    "triggers": ["strait_airflow.triggers"],
}


def info() -> dict[str, Any]:
    """Return the provider's entry, in the form of Airflow's `provider_info.schema.json`."""
    from strait import __version__

    modules = {kind: [{"integration-name": "Strait", "python-modules": names}] for kind, names in _MODULES.items()}
    return {
        "package-name": "airflow-provider-strait",
        "name": "Strait",
        "description": "Kafka cluster-to-cluster replication on Spark.",
        "versions": [__version__],
        "integrations": [{"integration-name": "Strait", "tags": ["apache"]}],
        **modules,
        "extra-links": ["strait_airflow.page_address.PageButton"],
    }

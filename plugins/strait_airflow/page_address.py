"""The address of a link on the page: for task logs, the pages of DAGs, and a button on the pages of tasks."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

ROUTE = "strait"
"""Path below `/plugin/`, under which Airflow shows the page in its frame."""


def base_url() -> str:
    """Return the base URL of Airflow's UI without a trailing slash; "" if not configured: addresses are then paths."""
    return str(conf.get("api", "base_url", fallback="") or "").rstrip("/")


def page_address(link: str) -> str:
    return f"{base_url()}/plugin/{ROUTE}#/link/{quote(link, safe='')}"


class PageButton(BaseOperatorLink):
    """A button on a task's page that opens its link. Airflow sets its address when the task ends.

    Args:
        link: name of the link; "": that of the operator's attribute `link`.
    """

    name = "Strait"

    def __init__(self, link: str = "") -> None:
        self._link = link

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        return page_address(self._link or getattr(operator, "link", ""))

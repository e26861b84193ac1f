"""Where the page shows a link: for the logs of tasks, the pages of DAGs, and a button on the pages of tasks."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

ROUTE = "strait"
"""Below `/plugin/`, where Airflow shows the page in its frame."""


def base_url() -> str:
    """Of Airflow's UI, without a slash at its end; "" where it is not configured, so that addresses have only a path."""
    return str(conf.get("api", "base_url", fallback="") or "").rstrip("/")


def page_address(link: str) -> str:
    return f"{base_url()}/plugin/{ROUTE}#/link/{quote(link, safe='')}"


class PageButton(BaseOperatorLink):
    """A button on a task's page that leads to its link. Airflow fills it in when the task ends."""

    name = "Strait"

    def __init__(self, link: str) -> None:
        self._address = page_address(link)

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        return self._address

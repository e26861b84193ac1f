"""Status of the demo: its running parts, their addresses, and the records copied."""

from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from strait.config.naming import application_name
from strait.demo.figures import Figures, GroupFigures, TopicFigures
from strait.demo.folder import DESTINATION, LINK, LINKS, SOURCE, DemoFolder
from strait.demo.parts import Parts
from strait.embedded.airflow import USER


@dataclass(frozen=True, slots=True)
class DemoStatus:
    """The demo at one moment.

    Attributes:
        parts: name of each part -> whether it runs.
        links_file: its path.
        log_ports: on which Airflow's servers for the logs of running tasks and triggers listen, on all addresses.
        airflow_problems: a line for each component of Airflow that does not run, while the others do.
        application_pids: processes of the link from source to destination.
    """

    parts: dict[str, bool]
    clusters: dict[str, str]
    links_file: str
    airflow_url: str
    airflow_password: str
    log_ports: tuple[int, int]
    application_pids: list[int]
    topics: list[TopicFigures]
    consumer_groups: list[GroupFigures]
    memory_pss_bytes: int
    airflow_problems: list[str] = field(default_factory=list)

    @property
    def page_url(self) -> str:
        """URL of Strait's page in Airflow."""
        return f"{self.airflow_url}/plugin/strait"

    @property
    def running(self) -> bool:
        """Whether all parts run."""
        return all(self.parts.values()) and not self.airflow_problems

    def as_data(self) -> dict[str, Any]:
        """Return the data that `--json` prints."""
        return {
            "running": self.running,
            "parts": self.parts,
            "clusters": self.clusters,
            "airflow": {
                "url": self.airflow_url,
                "user": USER,
                "password": self.airflow_password,
                "log_ports": list(self.log_ports),
                "problems": self.airflow_problems,
            },
            "page": self.page_url,
            "links_file": self.links_file,
            "links": list(LINKS),
            "application": {"pids": self.application_pids},
            "topics": [asdict(topic) for topic in self.topics],
            "consumer_groups": [asdict(groups) for groups in self.consumer_groups],
            "memory_pss_bytes": self.memory_pss_bytes,
        }


def demo_status(folder: DemoFolder) -> DemoStatus | None:
    """Return the status of the demo; None if no demo was started."""
    ports = folder.ports
    if ports is None or not folder.airflow.was_launched:
        return None
    parts = Parts(folder)
    running = parts.running()
    topics, groups = [], []
    if running[SOURCE] and running[DESTINATION]:
        with Figures(folder.clusters) as figures:
            topics, groups = figures.read(), figures.groups()
    mine = parts.applications().get(application_name(LINK, "default"), [])
    return DemoStatus(
        parts=running,
        clusters={SOURCE: folder.clusters[SOURCE], DESTINATION: folder.clusters[DESTINATION]},
        links_file=str(folder.links_file),
        airflow_url=folder.airflow.url,
        airflow_password=folder.airflow.password,
        log_ports=(ports.task_logs, ports.trigger_logs),
        application_pids=sorted(process.pid for process in mine),
        topics=topics,
        consumer_groups=groups,
        memory_pss_bytes=sum(map(_pss_bytes, parts.processes())),
        airflow_problems=folder.airflow.problems(),
    )


def _pss_bytes(process: psutil.Process) -> int:
    """Return a process's proportional share of its memory, so that pages shared by several processes are counted once
    in the sum of all; 0 if the process has exited."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0

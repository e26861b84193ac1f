"""What of the demo runs, where, and how much it has copied."""

from dataclasses import asdict, dataclass
from typing import Any

import psutil

from strait.demo.figures import Figures, TopicFigures
from strait.demo.folder import DESTINATION, LINK, SOURCE, DemoFolder
from strait.demo.parts import Parts
from strait.embedded.airflow import USER


@dataclass(frozen=True, slots=True)
class DemoStatus:
    """The demo at one moment. ``parts``: name of each part -> whether it runs."""

    parts: dict[str, bool]
    clusters: dict[str, str]
    airflow_url: str
    airflow_password: str
    application_pids: list[int]
    topics: list[TopicFigures]
    memory_pss_bytes: int

    @property
    def running(self) -> bool:
        """Whether all of it runs."""
        return all(self.parts.values())

    def as_data(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "running": self.running,
            "parts": self.parts,
            "clusters": self.clusters,
            "airflow": {"url": self.airflow_url, "user": USER, "password": self.airflow_password},
            "links": [LINK],
            "application": {"pids": self.application_pids},
            "topics": [asdict(topic) | {"lag_records": topic.lag_records} for topic in self.topics],
            "memory_pss_bytes": self.memory_pss_bytes,
        }


def demo_status(folder: DemoFolder) -> DemoStatus | None:
    """None where no demo was started."""
    ports = folder.ports
    if ports is None or not folder.airflow.was_launched:
        return None
    parts = Parts(folder)
    running = parts.running()
    topics = []
    if running["source"] and running["destination"]:
        with Figures(folder.clusters) as figures:
            topics = figures.read()
    return DemoStatus(
        parts=running,
        clusters={SOURCE: folder.clusters[SOURCE], DESTINATION: folder.clusters[DESTINATION]},
        airflow_url=folder.airflow.url,
        airflow_password=folder.airflow.password,
        application_pids=sorted(process.pid for process in parts.application()),
        topics=topics,
        memory_pss_bytes=sum(map(_pss_bytes, parts.processes())),
    )


def _pss_bytes(process: psutil.Process) -> int:
    """Its share of the memory it uses: pages that several processes share are counted once in the sum of all."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0

"""Adds to the wheel what Airflow, Spark and Prometheus read from files: DAGs, the plugin, the job for spark-submit, alert rules and the dashboard.

A checkout and an editable installation have them in their places; see `strait.config.home.shared`.

The address of the sources in the package's metadata is that of `STRAIT_REPOSITORY`, which `make release` sets: a fork must not
send its users to another repository.
"""

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from setuptools import setup
from setuptools.command.build_py import build_py

LOCKS = ("requirements.lock", "requirements-msk.lock")  # of the libraries that an application's archive has
SHARED = ("dags", "plugins", "spark_jobs", "docs/monitoring", "docker/maintenance.sh", *LOCKS)


class WithShared(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "strait" / "shared"
        shutil.rmtree(target, ignore_errors=True)
        for name in SHARED:
            source = Path(__file__).parent / name
            if source.is_dir():
                shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target / name)


def urls() -> dict[str, str]:
    given = os.environ.get("STRAIT_REPOSITORY", "")
    parts = urlsplit(given)
    if given and (parts.scheme != "https" or not parts.hostname):
        raise SystemExit("STRAIT_REPOSITORY: not an https:// address")
    host = parts.netloc.rpartition("@")[2]  # the address of a checkout may have a password
    return {"Source": f"https://{host}{parts.path.removesuffix('/').removesuffix('.git')}"} if given else {}


setup(cmdclass={"build_py": WithShared}, project_urls=urls())

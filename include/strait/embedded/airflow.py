"""A real Airflow on this machine (`airflow standalone`), for the demo and for tests.

Everything it writes is in one directory. It listens on 127.0.0.1, for one user, whose random password is in a file that
only its owner can read. Two servers for the logs of running tasks and triggers listen on all addresses: Airflow 3.3 has no
setting for that. They answer only requests that this Airflow has signed.
"""

import json
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from strait.embedded.airflow_client import AirflowClient
from strait.embedded.airflow_health import CONSEQUENCES, components_at
from strait.embedded.detached import Detached
from strait.embedded.waiting import wait_for
from strait.errors import SetupError

USER = "admin"


class LocalAirflow:
    """Airflow with the DAGs and plugins of ``project`` and the home directory ``home``.

    ``environment`` is added to its own; DAGs and tasks see it. A later process that names the same home can query, use
    and stop an Airflow that an earlier one started.
    """

    def __init__(self, home: Path, *, project: Path, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.project = project
        self.log = home / "airflow.log"
        self.environment = dict(environment or {})
        self._process = Detached(home / "airflow.pid.json")

    @staticmethod
    def check_installed() -> None:
        """Raises SetupError if this Python's environment has no Airflow."""
        if not (_bin() / "airflow").exists():
            raise SetupError("Airflow: not installed", hint="install the package with its extra: strait[airflow]")

    def launch(self, *, port: int, log_ports: tuple[int, int]) -> None:
        """Start Airflow and return immediately; call `wait_until_healthy` next.

        ``port`` is for the UI and the API; ``log_ports`` are for the two servers of the logs of running tasks and
        triggers. All three must be free.
        """
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_password()
        _write_private(self._address, json.dumps({"port": port}))
        self._process.start(
            # Both are in its session, so both stop with it.
            ["/bin/sh", "-c", '"$0" later & exec "$1" standalone', str(self._maintenance), str(_bin() / "airflow")],
            environment=self._full_environment(port, log_ports),
            log=self.log,
            directory=self.home,
        )

    def wait_until_healthy(self, timeout_seconds: float = 180) -> None:
        """Wait until all components are healthy. Raises SetupError if Airflow exits, or is not healthy in time."""
        hint = f"read the end of {self.log}"
        missing: list[str] = []

        def healthy() -> bool:
            missing[:] = self.missing_components()
            if missing and self.pid is None:
                raise SetupError("Airflow: starting: it ended", hint=hint)
            return not missing

        def so_far() -> str:
            return f"not healthy: {', '.join(missing)}"

        wait_for("Airflow: starting", timeout_seconds, healthy, so_far=so_far, hint=hint)

    def stop(self) -> None:
        """Stop Airflow and all its components. Spark applications that its tasks submitted keep running."""
        # Only SIGINT makes standalone stop its components; a SIGTERM would orphan them. A task that runs at that time
        # tries for half a minute to reach the API server, which has stopped: this is not waited for.
        self._process.stop(signal.SIGINT, grace_seconds=15)

    @property
    def pid(self) -> int | None:
        """The pid of `airflow standalone` while it runs, else None."""
        return self._process.pid

    def processes(self) -> list[psutil.Process]:
        """Return every process of Airflow. Spark applications that its tasks submitted are not among them."""
        return self._process.members()

    @property
    def was_launched(self) -> bool:
        """Whether Airflow was ever launched in this home; `url` and `password` are known then."""
        return self._address.exists()

    @property
    def url(self) -> str:
        """The URL of the UI and the API. Known once Airflow was launched."""
        port = json.loads(self._address.read_text(encoding="utf-8"))["port"]
        return f"http://127.0.0.1:{port}"

    @property
    def password(self) -> str:
        """The password of the user ``admin``."""
        return str(json.loads(self._passwords.read_text(encoding="utf-8"))[USER])

    def client(self) -> AirflowClient:
        """Return a client of the API; the caller closes it."""
        return AirflowClient(self.url, USER, self.password)

    def missing_components(self) -> list[str]:
        """Return the components that are not healthy now; all of them if nothing answers."""
        try:
            return [one.name for one in components_at(self.url) if not one.healthy]
        except SetupError:
            return list(CONSEQUENCES)

    def problems(self) -> list[str]:
        """Return a line for each component that does not run while the others do."""
        if self.pid is None:
            return []
        try:
            return [one.problem for one in components_at(self.url) if one.problem]
        except SetupError as error:
            return [str(error)]

    @property
    def _maintenance(self) -> Path:
        """The script that deletes old runs and logs every day."""
        return self.project / "docker" / "maintenance.sh"

    @property
    def _address(self) -> Path:
        return self.home / "address.json"

    @property
    def _passwords(self) -> Path:
        return self.home / "passwords.json"

    def _make_password(self) -> None:
        if not self._passwords.exists():
            _write_private(self._passwords, json.dumps({USER: secrets.token_urlsafe(12)}))

    def _full_environment(self, port: int, log_ports: tuple[int, int]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        return inherited | self._settings(port, log_ports) | self.environment

    def _settings(self, port: int, log_ports: tuple[int, int]) -> dict[str, str]:
        sections: dict[str, dict[str, object]] = {
            "core": {
                "dags_folder": self.project / "dags",
                "plugins_folder": self.project / "plugins",
                "load_examples": False,
                "parallelism": 4,  # number of processes that wait for tasks; the default is 32
                "execution_api_server_url": f"http://127.0.0.1:{port}/execution/",
                "simple_auth_manager_users": f"{USER}:admin",
                "simple_auth_manager_passwords_file": self._passwords,
            },
            # SQLite has one writer at a time. By default, one that waited for 5 s for the others gets an error, which on a busy
            # machine ends a user's request with 500.
            "database": {"sql_alchemy_conn": f"sqlite:///{self.home.absolute() / 'airflow.db'}?timeout=60"},
            "api": {"host": "127.0.0.1", "port": port, "base_url": f"http://127.0.0.1:{port}", "workers": 1},
            "dag_processor": {
                "refresh_interval": 10,  # seconds until a new DAG file appears; the default is five minutes
                "min_file_process_interval": 30,
            },
            "logging": {"worker_log_server_port": log_ports[0], "trigger_log_server_port": log_ports[1]},
        }
        settings = {
            f"AIRFLOW__{section.upper()}__{key.upper()}": str(value)
            for section, values in sections.items()
            for key, value in values.items()
        }
        return settings | {
            "AIRFLOW_HOME": str(self.home),
            "PYTHONPATH": str(self.project / "include"),
            "PATH": os.pathsep.join([str(_bin()), os.environ.get("PATH", os.defpath)]),  # standalone calls `airflow`
            "NO_COLOR": "1",
        }


def _bin() -> Path:
    """Return the directory of this Python's commands."""
    return Path(sys.executable).parent


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)

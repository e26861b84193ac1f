"""The directory of everything that Strait creates on this machine: ignored by git, safe to delete when nothing runs."""

import os
from pathlib import Path


def project_root() -> Path:
    """Return the checkout that this code runs from; the current directory if it was installed without one."""
    checkout = Path(__file__).resolve().parents[3]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def shared() -> Path:
    """Return the directory with `dags`, `plugins`, `spark_jobs`, `docs/monitoring` and `docker`: that in the installed package,
    otherwise the one that holds `include`, of a checkout or an image."""
    installed = Path(__file__).resolve().parents[1] / "shared"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3]


def home() -> Path:
    """Return ``$STRAIT_HOME`` if set, otherwise ``.strait`` in the project. Not created here."""
    override = os.environ.get("STRAIT_HOME")
    return Path(override).resolve() if override else project_root() / ".strait"

"""Where Strait keeps what it makes on this machine: one folder, ignored by git, safe to delete when nothing runs."""

import os
from pathlib import Path


def project_root() -> Path:
    """The checkout that this code runs from; the current folder if it was installed without one."""
    checkout = Path(__file__).resolve().parents[3]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def home() -> Path:
    """``$STRAIT_HOME``, else ``.strait`` in the project. Not created here."""
    override = os.environ.get("STRAIT_HOME")
    return Path(override).resolve() if override else project_root() / ".strait"

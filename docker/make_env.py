"""Write `.env` for docker-compose.yaml: `.env.example` with a random secret wherever it has no value, and with the digests
of images in docker/images.lock.

A `.env` that is there already is left alone: its secrets are in use.
"""

import base64
import os
import secrets
import sys
from pathlib import Path


def filled(example: str) -> str:
    """Each value is 32 random bytes in the form of a Fernet key."""
    lines = (
        line + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii") if _is_open(line) else line
        for line in example.splitlines()
    )
    return "\n".join(lines) + "\n"


def with_digests(text: str, lock: str) -> str:
    """Give each image its digest, if the lock file has one for its tag."""
    digests = dict(line.split("@", 1) for line in lock.splitlines() if "@" in line and not line.startswith("#"))
    lines = []
    for line in text.splitlines():
        digest = digests.get(line.partition("=")[2])
        lines.append(f"{line}@{digest}" if digest else line)
    return "\n".join(lines) + "\n"


def without_digest(lock: str) -> list[str]:
    """Return the images of the lock file whose tag is trusted."""
    return [line for line in lock.splitlines() if line and not line.startswith("#") and "@" not in line]


def _is_open(line: str) -> bool:
    return line.endswith("=") and not line.startswith("#")


def main(project: Path) -> int:
    lock = (project / "docker" / "images.lock").read_text(encoding="utf-8")
    text = with_digests(filled((project / ".env.example").read_text(encoding="utf-8")), lock)
    try:
        descriptor = os.open(project / ".env", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.stderr.write(f"{project / '.env'} is there already; delete it to get new secrets\n")
        return 1
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    for image in without_digest(lock):
        sys.stderr.write(
            f"{image}: docker/images.lock has no digest, so its tag is trusted; `make images-lock` adds it\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))

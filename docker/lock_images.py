"""Write the digests of the images in docker/images.lock, as their registries give them for the tags. Needs Docker."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LOCK = Path(__file__).with_name("images.lock")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def images(text: str) -> list[str]:
    """Return the lines of a lock file that are images."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def locked(text: str, digest_of: Callable[[str], str]) -> str:
    """Return the lock file with each image's digest anew. Raises ValueError for an answer that is no digest."""
    lines = []
    for line in text.splitlines():
        tag = line.partition("@")[0]
        if not line or line.startswith("#"):
            lines.append(line)
            continue
        digest = digest_of(tag)
        if DIGEST.fullmatch(digest) is None:
            raise ValueError(f"{tag}: {digest!r} is no digest")
        lines.append(f"{tag}@{digest}")
    return "\n".join(lines) + "\n"


def ask(image: str) -> str:
    """Return the digest of the index of all platforms, so that it is the same on each."""
    asked = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    return subprocess.run(asked, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


if __name__ == "__main__":
    try:
        LOCK.write_text(locked(LOCK.read_text(encoding="utf-8"), ask), encoding="utf-8")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        sys.exit(f"docker/images.lock is unchanged: {error}")

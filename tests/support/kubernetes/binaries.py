"""A real kube-apiserver, etcd and dumb-init, made once and kept below `.strait/kubernetes`.

The API server is compiled from its Go module (12 minutes of CPU, once); etcd and dumb-init are unpacked from Debian's
packages. ``python -m support.kubernetes.binaries`` makes them now.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from strait.embedded.paths import home

VERSION = "1.35.4"
"""Of Kubernetes. The Python client's pinned version is the one made for it."""
_STAGING = f"v0.{VERSION.partition('.')[2]}"  # Kubernetes' libraries have the same minor version and patch, below v0
_PACKAGES = {"etcd": "etcd-server", "dumb-init": "dumb-init"}
_GO_MINUTES = 90  # on one busy core


def folder() -> Path:
    return home() / "kubernetes"


def kube_apiserver() -> Path:
    """Compiled where it is missing."""
    binary = folder() / f"kube-apiserver-{VERSION}"
    if not binary.exists():
        _compile(binary)
    return binary


def from_debian(command: str) -> Path:
    """``etcd`` or ``dumb-init``, without installing anything."""
    binary = folder() / command
    if not binary.exists():
        with tempfile.TemporaryDirectory() as here:
            _run(["apt-get", "update", "-qq"], here)
            _run(["apt-get", "download", "-qq", _PACKAGES[command]], here)
            package = next(Path(here).glob("*.deb"))
            _run(["dpkg", "-x", str(package), "."], here)
            _keep(Path(here, "usr", "bin", command), binary)
    return binary


def _compile(binary: Path) -> None:
    """In a module whose requirements are those of k8s.io/kubernetes itself: that one cannot be built from outside,
    since it finds its libraries in its own folder; here they are the published modules of the same version."""
    with tempfile.TemporaryDirectory() as here:
        module = json.loads(_run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}"], here))
        text = Path(module["GoMod"]).read_text(encoding="utf-8")
        text = text.replace("module k8s.io/kubernetes", "module strait.test/kubernetes", 1)
        text = re.sub(r"=> \./staging/src/(\S+)", rf"=> \1 {_STAGING}", text)
        Path(here, "go.mod").write_text(f"{text}\nrequire k8s.io/kubernetes v{VERSION}\n", encoding="utf-8")
        shutil.copy(Path(module["Dir"], "go.sum"), here)
        version = f"-X k8s.io/component-base/version.gitVersion=v{VERSION}"
        _run(["go", "build", "-trimpath", "-ldflags", f"-s -w {version}", "-o", "server", "k8s.io/kubernetes/cmd/kube-apiserver"], here)
        _keep(Path(here, "server"), binary)


def _keep(made: Path, binary: Path) -> None:
    binary.parent.mkdir(parents=True, exist_ok=True)
    partial = binary.with_name(f".{binary.name}.{os.getpid()}")
    shutil.copy2(made, partial)
    partial.replace(binary)


def _run(command: list[str], here: str) -> str:
    environment = os.environ | {"GOFLAGS": "-mod=mod -p=1 -buildvcs=false", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["nice", "-n", "10", *command], cwd=here, env=environment, capture_output=True, text=True, timeout=60 * _GO_MINUTES
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done.stdout


if __name__ == "__main__":
    for made in (from_debian("etcd"), from_debian("dumb-init"), kube_apiserver()):
        print(made)  # noqa: T201

"""A real kube-apiserver, etcd and dumb-init, made once and kept below `.strait/kubernetes`.

The API server and etcd are compiled from their Go modules (15 minutes of CPU, once); dumb-init is unpacked from Debian's
package. ``python -m support.kubernetes.binaries`` makes them now.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from strait.config.home import home

VERSION = "1.35.4"
"""Of Kubernetes. The Python client's pinned version is the one made for it."""
_STAGING = f"v0.{VERSION.partition('.')[2]}"  # Kubernetes' libraries have the same minor version and patch, below v0
_COMMANDS = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "etcd": "go.etcd.io/etcd/server/v3",  # of the version that this Kubernetes is made with
}
_GO_MINUTES = 90  # on one busy core


def compiled(command: str) -> Path:
    """``kube-apiserver``, ``kube-controller-manager`` or ``etcd``; compiled now where it is missing."""
    return _made(f"{command}-{VERSION}", lambda here: _compile(command, here))


def dumb_init() -> Path:
    """The image's process 1, without installing it."""
    return _made("dumb-init", _unpack_dumb_init)


def _made(name: str, make: Callable[[Path], Path]) -> Path:
    """From the cache. Callers in other processes wait for the first one."""
    folder = home() / "kubernetes"
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / name
    with (folder / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            with tempfile.TemporaryDirectory() as here:
                partial = binary.with_name(f".{name}.partial")
                shutil.copy2(make(Path(here)), partial)
                partial.replace(binary)
    return binary


def _unpack_dumb_init(here: Path) -> Path:
    _run(["apt-get", "update", "-qq"], here)
    _run(["apt-get", "download", "-qq", "dumb-init"], here)
    _run(["dpkg", "-x", str(next(here.glob("*.deb"))), "."], here)
    return here / "usr" / "bin" / "dumb-init"


def _compile(command: str, here: Path) -> Path:
    """In a module whose requirements are those of k8s.io/kubernetes itself: that one cannot be built from outside,
    since it finds its libraries in its own folder; here they are the published modules of the same version."""
    module = json.loads(_run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}"], here))
    text = Path(module["GoMod"]).read_text(encoding="utf-8")
    text = text.replace("module k8s.io/kubernetes", "module strait.test/kubernetes", 1)
    text = re.sub(r"=> \./staging/src/(\S+)", rf"=> \1 {_STAGING}", text)
    (here / "go.mod").write_text(f"{text}\nrequire k8s.io/kubernetes v{VERSION}\n", encoding="utf-8")
    (here / "go.sum").write_bytes(Path(module["Dir"], "go.sum").read_bytes())
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion=v{VERSION}"
    _run(["go", "build", "-trimpath", "-ldflags", flags, "-o", "command", _COMMANDS[command]], here)
    return here / "command"


def _run(command: list[str], here: Path) -> str:
    environment = os.environ | {"GOFLAGS": "-mod=mod -p=1 -buildvcs=false", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["nice", "-n", "10", *command],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60 * _GO_MINUTES,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done.stdout


if __name__ == "__main__":
    for made in (dumb_init(), *map(compiled, _COMMANDS)):
        print(made)  # noqa: T201

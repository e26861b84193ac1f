"""`strait audit` as it is typed, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import yaml

from strait.launch import processes

STRAIT = Path(sys.executable).with_name("strait")


class Command:
    """`strait audit` with a links file and a home of its own."""

    def __init__(self, folder: Path, settings: Any) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.file = folder / "links.yaml"
        self.file.write_text(yaml.safe_dump(settings))

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"STRAIT_HOME": str(self.home), "STRAIT_LINKS_FILE": str(self.file)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [STRAIT, "audit", *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, code: int = 0) -> str:
        process = self.start(*words)
        out, err = process.communicate(timeout=400)
        assert process.returncode == code, (out[-3000:], err[-3000:], self.logs())
        return out

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in self.home.glob("audit-applications/*/*/log*"))

    def progress(self) -> dict[str, Any]:
        found = [json.loads(path.read_bytes()) for path in self.home.glob("audits/*/progress.json")]
        return found[-1] if found else {}

    def processes(self) -> list[psutil.Process]:
        return [one for some in processes.find(self.home / "audit-applications").values() for one in some]

"""Fetching Kafka's jars, with the real Ivy and a small Maven repository on this machine."""

import hashlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest

from strait.embedded import jars
from strait.embedded.ports import free_ports

pytestmark = pytest.mark.broker

IVY_FILE = Path(jars.__file__).with_name("ivy.xml")
VERSIONS = {"${kafka.version}": jars.KAFKA_VERSION, "${log4j.version}": jars.LOG4J_VERSION}


@pytest.fixture(scope="module")
def kafka_jars() -> Path:
    """Those of this machine, found before a test has it look elsewhere."""
    return jars.kafka_jars()


def publish(root: Path, kafka_jars: Path, organisation: str, name: str, version: str) -> None:
    folder = root / organisation.replace(".", "/") / name / version
    folder.mkdir(parents=True)
    (folder / f"{name}-{version}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>{organisation}</groupId><artifactId>{name}</artifactId><version>{version}</version></project>",
        encoding="utf-8",
    )
    jar = f"{name}-{version}.jar"
    shutil.copy(kafka_jars / jar, folder / jar)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def repository(tmp_path: Path, kafka_jars: Path) -> Iterator[str]:
    """Has the jars that ivy.xml asks for, without any further dependency."""
    root = tmp_path / "repository"
    for wanted in ElementTree.parse(IVY_FILE).iter("dependency"):  # noqa: S314 - our own file
        publish(root, kafka_jars, wanted.attrib["org"], wanted.attrib["name"], VERSIONS[wanted.attrib["rev"]])
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the jars and without a proxy."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "jars"


def fetcher() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "strait.embedded.jars"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_callers_at_once_fetch_once_and_leave_only_the_jars(environment, repository, monkeypatch):
    monkeypatch.setenv(jars.REPOSITORY_VARIABLE, repository)
    said = []
    for process in [fetcher(), fetcher()]:
        out, progress = process.communicate()
        assert process.returncode == 0, progress
        assert out.strip() == str(environment / f"kafka-{jars.KAFKA_VERSION}")
        said.append(progress)
    assert "".join(said).count("Fetching") == 1

    names = {jar.name for jar in (environment / f"kafka-{jars.KAFKA_VERSION}").iterdir()}
    assert {f"kafka_2.13-{jars.KAFKA_VERSION}.jar", f"connect-mirror-{jars.KAFKA_VERSION}.jar"} < names
    assert {path.name for path in environment.iterdir()} == {".lock", f"kafka-{jars.KAFKA_VERSION}"}


def test_an_unreachable_repository_is_named_and_leaves_nothing_that_looks_complete(environment, monkeypatch):
    address = f"http://127.0.0.1:{free_ports(1)[0]}/"
    monkeypatch.setenv(jars.REPOSITORY_VARIABLE, address)
    process = fetcher()
    _, said = process.communicate()
    assert process.returncode == 1
    error = said.splitlines()[-1]
    assert error.startswith(f"setup: fetching Kafka {jars.KAFKA_VERSION} from {address}: Server access error")
    assert error.endswith(
        f"(check this machine's network and proxy, or name a mirror of Maven Central in {jars.REPOSITORY_VARIABLE})"
    )
    assert [path.name for path in environment.iterdir() if path.name.startswith("kafka")] == []


def test_another_jar_than_the_one_that_strait_was_made_with_is_not_used(environment, repository, tmp_path, monkeypatch):
    monkeypatch.setenv(jars.REPOSITORY_VARIABLE, repository)
    jar = next((tmp_path / "repository").rglob(f"connect-mirror-{jars.KAFKA_VERSION}.jar"))
    changed = bytearray(jar.read_bytes())
    changed[100] ^= 1
    jar.write_bytes(changed)
    process = fetcher()
    _, said = process.communicate()
    assert process.returncode == 1
    found = hashlib.sha256(changed).hexdigest()
    assert said.splitlines()[-1].startswith(
        f"setup: {jar.name} from {repository} is not the file that Strait was made with: its SHA-256 is {found}"
    )
    assert [path.name for path in environment.iterdir() if path.name.startswith("kafka")] == []

"""The provider for Airflow, installed beside the package into an environment of its own: nothing of a checkout, no plugins
folder."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from strait.config.home import project_root
from support.fixtures.wheel import Installed, install

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

PROVIDER = "airflow-provider-strait"
LINKS = {
    "clusters": {"a": {"bootstrap.servers": "127.0.0.1:1"}, "b": {"bootstrap.servers": "127.0.0.1:2"}},
    "links": {"a-to-b": {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("provider"), "airflow", provider=True)


@pytest.fixture(scope="module")
def environment(installed: Installed) -> dict[str, str]:
    (installed.folder / "links.yaml").write_text(yaml.safe_dump(LINKS))
    home = installed.folder / "airflow"
    return installed.environment | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "no-plugins"),
        "STRAIT_LINKS_FILE": str(installed.folder / "links.yaml"),
        "STRAIT_HOME": str(installed.folder / "home"),
    }


def last_line(installed: Installed, environment: dict[str, str], *command: str) -> str:
    whole = [str(installed.bin / command[0]), *command[1:]]
    done = subprocess.run(
        whole, cwd=installed.folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


def test_airflow_finds_the_provider_and_its_plugin(installed: Installed, environment: dict[str, str]):
    found = json.loads(last_line(installed, environment, "airflow", "providers", "list", "-o", "json"))
    assert PROVIDER in {one["package_name"] for one in found}
    code = (
        "import json; from airflow.plugins_manager import get_fastapi_plugins, get_import_errors; "
        "apps, middlewares = get_fastapi_plugins(); "
        "print(json.dumps([[one['name'] for one in apps], len(middlewares), get_import_errors()]))"
    )
    assert json.loads(last_line(installed, environment, "python", "-c", code)) == [["Strait"], 1, {}]


def test_the_dags_of_the_package_are_read_with_the_provider_alone(installed: Installed, environment: dict[str, str]):
    code = (
        "import json; from airflow.dag_processing.dagbag import DagBag; from strait.config.home import shared; "
        "bag = DagBag(shared() / 'dags', collect_dags=True); "
        "print(json.dumps([sorted(bag.dags), bag.import_errors]))"
    )
    dags, errors = json.loads(last_line(installed, environment, "python", "-c", code))
    assert errors == {}
    assert {"strait_a-to-b", "strait-failover"} <= set(dags)
    code = "import strait_airflow.operators as found; print(found.__file__)"
    assert installed.bin.parent in Path(last_line(installed, environment, "python", "-c", code)).parents


def test_both_packages_have_one_version():
    package, provider = (
        tomllib.loads((project_root() / name).read_text())["project"]
        for name in ("pyproject.toml", "provider/pyproject.toml")
    )
    assert provider["version"] == package["version"]
    assert provider["dependencies"] == [f"strait[airflow]=={package['version']}"]
    assert provider["requires-python"] == package["requires-python"]

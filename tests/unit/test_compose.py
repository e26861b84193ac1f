"""docker-compose.yaml, checked without Docker: that all it names is there, agrees, and is closed to strangers."""

import base64
import importlib
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import jwt
import pytest

from strait import __version__
from strait.config.links import load, parse_topics
from strait.embedded.jars import KAFKA_VERSION
from support.fixtures.compose import (
    DOCKERFILE,
    FILE,
    PROJECT,
    compose,
    example_variables,
    image_environment,
    in_image,
    in_repository,
    mounts,
    services,
    substituted,
    variables_used,
)

ALL = sorted(services())


def images():
    """Of all services, as they are without a `.env`."""
    return {substituted(services()[service]["image"]) for service in ALL}


def test_docker_accepts_the_file(tmp_path):
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("no docker compose on this machine")
    values = "".join(f"{name}={value or 'x'}\n" for name, value in example_variables().items())
    env = tmp_path / "env"
    env.write_text(values, encoding="utf-8")
    command = ["docker", "compose", "--file", FILE, "--env-file", env, "config", "--quiet"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("service", ALL)
def test_mounts_are_folders_of_the_repository_or_declared_volumes(service):
    for source, target in mounts(service):
        assert target.startswith("/")
        if source.startswith("./"):
            assert (PROJECT / source).exists(), source
        else:
            assert source in compose()["volumes"], source


def test_every_volume_is_used():
    used = {source for service in ALL for source, _ in mounts(service)}
    assert set(compose()["volumes"]) <= used


def test_the_example_environment_has_every_variable_and_no_other():
    assert set(example_variables()) == variables_used()


def test_defaults_in_the_file_are_those_of_the_example():
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text(encoding="utf-8")))
    assert defaults == {name: value for name, value in example_variables().items() if value}


def test_secrets_have_no_default_and_must_be_given():
    text = FILE.read_text(encoding="utf-8")
    secrets = {name for name, value in example_variables().items() if not value}
    assert secrets >= {"AIRFLOW_ADMIN_PASSWORD", "AIRFLOW_FERNET_KEY", "POSTGRES_PASSWORD"}
    for name in secrets:
        assert set(re.findall(rf"\$\{{{name}([^}}]*)\}}", text)) == {":?see .env.example"}
    for key, value in chain.from_iterable(services()[service].get("environment", {}).items() for service in ALL):
        if re.search(r"PASSWORD$|SECRET|FERNET", key):
            assert re.fullmatch(r"\$\{\w+:\?see \.env\.example\}", value), key


def test_a_made_environment_has_a_secret_for_everything_open():
    make_env = runpy.run_path(str(PROJECT / "docker" / "make_env.py"))
    example = (PROJECT / ".env.example").read_text(encoding="utf-8")
    made = dict(
        line.split("=", 1) for line in make_env["filled"](example).splitlines() if line and not line.startswith("#")
    )
    assert set(made) == set(example_variables())
    random = [made[name] for name, value in example_variables().items() if not value]
    assert len(set(random)) == len(random)
    assert all(len(base64.urlsafe_b64decode(value)) == 32 for value in random)


def test_an_environment_in_use_is_not_overwritten(tmp_path):
    make_env = runpy.run_path(str(PROJECT / "docker" / "make_env.py"))
    shutil.copy(PROJECT / ".env.example", tmp_path)
    (tmp_path / "docker").mkdir()
    shutil.copy(PROJECT / "docker" / "images.lock", tmp_path / "docker")
    assert make_env["main"](tmp_path) == 0
    first = (tmp_path / ".env").read_text(encoding="utf-8")
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert make_env["main"](tmp_path) == 1
    assert (tmp_path / ".env").read_text(encoding="utf-8") == first


def test_git_ignores_the_environment():
    assert ".env" in (PROJECT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_images_are_pinned_and_each_has_its_line_in_the_lock():
    lock = runpy.run_path(str(PROJECT / "docker" / "lock_images.py"))
    lines = lock["images"](lock["LOCK"].read_text(encoding="utf-8"))
    assert all(re.fullmatch(rf"[a-z/]+:\d[\w.-]*(@{lock['DIGEST'].pattern})?", line) for line in lines), lines
    locked = {line.partition("@")[0] for line in lines}
    named = {value for name, value in example_variables().items() if name.endswith("_IMAGE")}
    own = {image for image in images() if image.startswith("strait:")}
    dockerfile = re.search(r"^ARG AIRFLOW_IMAGE=(\S+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert locked == named == (images() - own) | {dockerfile and dockerfile[1]}
    assert len(own) == 1 and re.search(r":\d", own.pop())


def test_digests_are_locked_as_registries_give_them_and_reach_docker_compose(tmp_path):
    lock = runpy.run_path(str(PROJECT / "docker" / "lock_images.py"))
    make_env = runpy.run_path(str(PROJECT / "docker" / "make_env.py"))
    text, digest = (PROJECT / "docker" / "images.lock").read_text(encoding="utf-8"), "sha256:" + "0a" * 32
    asked = []
    locked = lock["locked"](text, lambda image: asked.append(image) or digest)
    assert [f"{image}@{digest}" for image in asked] == lock["images"](locked) and len(asked) == 3
    assert lock["locked"](locked, lambda _: digest) == locked, "a tag is asked for, without its former digest"
    with pytest.raises(ValueError, match="is no digest"):
        lock["locked"](text, lambda _: "latest")
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "images.lock").write_text(locked)
    shutil.copy(PROJECT / ".env.example", tmp_path)
    assert make_env["main"](tmp_path) == 0
    made = (tmp_path / ".env").read_text(encoding="utf-8").splitlines()
    assert [line for line in made if "_IMAGE=" in line] == [
        f"AIRFLOW_IMAGE={asked[0]}@{digest}",
        f"KAFKA_IMAGE={asked[1]}@{digest}",
        f"POSTGRES_IMAGE={asked[2]}@{digest}",
    ]


def test_an_image_whose_tag_is_trusted_is_named(tmp_path, capsys):
    make_env = runpy.run_path(str(PROJECT / "docker" / "make_env.py"))
    shutil.copy(PROJECT / ".env.example", tmp_path)
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "images.lock").write_text(f"# comment\na/b:1\nc:2@sha256:{'0a' * 32}\n")
    assert make_env["main"](tmp_path) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("a/b:1: docker/images.lock has no digest") and "make images-lock" in line


def test_images_are_of_the_versions_that_everything_else_uses():
    dockerfile = DOCKERFILE.read_text(encoding="utf-8")
    airflow = re.search(r"^ARG AIRFLOW_IMAGE=apache/airflow:(\S+)-python3\.11$", dockerfile, re.MULTILINE)
    assert "FROM ${AIRFLOW_IMAGE}\n" in dockerfile
    lock = (PROJECT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.search(r"^apache-airflow==(\S+)", lock, re.MULTILINE)
    assert airflow and pinned and airflow.group(1) == pinned.group(1)
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert images() == {f"strait:{project['version']}", f"apache/kafka:{KAFKA_VERSION}", "postgres:17.6"}


def test_the_image_is_made_of_files_that_are_sent_to_docker():
    folder = PROJECT / "docker"
    copied = re.findall(r"^COPY ([^-]\S*) ", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    sent = re.findall(r"^!(\S+)$", (folder / "Dockerfile.dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert copied == sent
    assert all((PROJECT / name).exists() for name in copied)
    assert set(in_image()) == set(copied)
    for service in ALL:
        if "build" in services()[service]:
            build = services()[service]["build"]
            assert (build["context"], build["dockerfile"]) == (".", "docker/Dockerfile")
            assert list(build["args"]) == ["AIRFLOW_IMAGE"]
            assert f"ARG AIRFLOW_IMAGE={substituted(build['args']['AIRFLOW_IMAGE'])}\n" in DOCKERFILE.read_text()


def stages() -> list[str]:
    """The instructions of each stage of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return text.split("\nFROM ")[1:]


def test_the_image_has_no_compiler_no_tools_of_tests_and_a_user_who_cannot_change_its_code():
    build, image = stages()
    assert "gcc" in build and "gcc" not in image
    assert "Cython" in build and "Cython" not in image and "requirements-build" not in image
    assert re.findall(r"^USER (\S+)$", image, re.MULTILINE)[-1] == "50000:0"
    copied = re.findall(r"^COPY (.+)$", image, re.MULTILINE)
    assert not [line for line in copied if "--chown" in line or "--chmod" in line], "they belong to root"
    assert "--require-hashes -r /opt/airflow/requirements.lock" in image
    locked = (PROJECT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"^(pytest|playwright|mypy|ruff)==", locked, re.MULTILINE)


def test_the_image_compiles_with_what_the_package_is_built_with(tmp_path):
    build, _ = stages()
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (installed,) = re.findall(r"^RUN pip install (.*) \\$", build, re.MULTILINE)
    assert installed.endswith("--require-hashes -r /tmp/requirements-build.lock")
    modules = re.findall(r"include/(\S+)\.pyx", build)
    extensions = {one["name"]: one["sources"] for one in project["tool"]["setuptools"]["ext-modules"]}
    assert extensions == {module.replace("/", "."): [f"include/{module}.pyx"] for module in modules}


def test_the_image_has_the_strait_command(tmp_path):
    _, image = stages()
    assert image_environment()["PYTHONPATH"] == "/opt/airflow/include"
    (made,) = re.findall(r"&& (printf .*) >/usr/local/bin/strait ", image)
    script = tmp_path / "strait"
    script.write_bytes(subprocess.run(["sh", "-c", made], capture_output=True, check=True).stdout)
    script.chmod(0o755)
    (tmp_path / "typer.py").write_text("raise AssertionError('of the current directory')")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(PROJECT / "include")}
    done = subprocess.run(
        [script, "version"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[:2] == ["strait", __version__]


def test_the_entrypoint_runs_the_strait_command(tmp_path):
    script = tmp_path / "strait"
    script.write_text('#!/bin/sh\necho "strait $*"\n')
    script.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    entrypoint = [PROJECT / "docker" / "entrypoint.sh", "strait", "status", "a b"]
    done = subprocess.run(entrypoint, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "strait status a b\n"


HEALTHCHECK = PROJECT / "docker" / "healthcheck.sh"


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        (
            ["api-server"],
            "curl --fail --silent --max-time 10 --output /dev/null http://localhost:8080/api/v2/monitor/health",
        ),
        (["scheduler"], "curl --fail --silent --max-time 10 --output /dev/null http://localhost:8974/health"),
        (["dag-processor"], "airflow jobs check --job-type DagProcessorJob --hostname"),
        (["triggerer"], "airflow jobs check --job-type TriggererJob --hostname"),
        (["bash", "/opt/airflow/docker/init.sh"], ""),
        (["driver", "--class", "scheduler-like"], ""),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_the_health_of_a_container_is_that_of_its_component(tmp_path, command, asks, code):
    for name in ("curl", "airflow"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $@"\nexit {code}\n')
        program.chmod(0o755)
    line = tmp_path / "cmdline"
    line.write_bytes(
        b"\0".join(one.encode() for one in ["/usr/bin/dumb-init", "--", "/entrypoint.sh", *command]) + b"\0"
    )
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([HEALTHCHECK, line], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(asks) and bool(done.stdout) == bool(asks), done.stdout + done.stderr
    assert done.returncode == (code if asks else 0)


def test_every_component_of_airflow_is_asked():
    text, checked = HEALTHCHECK.read_text(encoding="utf-8"), set()
    for service in (name for name in ALL if name.startswith("airflow-") and len(services()[name]["command"]) == 1):
        assert f'*" {services()[service]["command"][0]} "*)' in text, service
        assert "healthcheck" not in services()[service], "the image has it"
        checked.add(service)
    assert len(checked) == 4
    assert f'CMD ["/opt/airflow/docker/{HEALTHCHECK.name}"]' in DOCKERFILE.read_text(encoding="utf-8")


def test_ports_are_published_on_loopback_and_differ():
    published = [substituted(port) for service in ALL for port in services()[service].get("ports", [])]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published), published
    assert len({port.split(":")[1] for port in published}) == len(published)


@pytest.mark.parametrize("service", ALL)
def test_services_wait_for_services_that_can_be_waited_for(service):
    for other, wait in services()[service].get("depends_on", {}).items():
        assert other in services()
        if wait["condition"] == "service_healthy":
            assert "healthcheck" in services()[other]
        if wait["condition"] == "service_completed_successfully":
            assert services()[other]["restart"] == "no"


@pytest.mark.parametrize("service", ALL)
def test_addresses_inside_are_names_of_services(service):
    addresses = re.findall(r"(?:@|://|=|^|\s)((?:airflow|spark|kafka)-[a-z-]+|postgres)(?=[:/]|$)", inside(service))
    assert set(addresses) <= set(services())


def inside(service: str) -> str:
    """What a service is told in its environment and command."""
    told = [*services()[service].get("environment", {}).values(), *services()[service].get("command", [])]
    return "\n".join(str(value) for value in told)


@pytest.mark.parametrize("service", ALL)
def test_commands_start_something_that_exists(service):
    match services()[service].get("command"):
        case ["bash", script, *_]:
            file = in_repository(service, script)
            assert file is not None and os.access(file, os.X_OK)
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
        case ["spark-class", main_class, *_]:
            assert main_class.replace(".", "/") + ".class" in spark_classes()
        case [airflow_command]:  # whether Airflow has it is asked in tests/airflow
            assert service.startswith("airflow-"), airflow_command
        case None:
            assert substituted(services()[service]["image"]).startswith(("postgres:", "apache/kafka:"))
        case other:
            pytest.fail(f"no check for {other}")


def spark_classes() -> set[str]:
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    jar = Path(found.origin).parent / "jars" / f"spark-core_2.13-{version('pyspark')}.jar"
    with zipfile.ZipFile(jar) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("service", [name for name in ALL if name.startswith("airflow-")])
def test_files_that_airflow_is_told_of_are_mounted(service):
    environment = services()[service]["environment"]
    for variable in ("STRAIT_LINKS_FILE", "PYTHONPATH"):
        file = in_repository(service, (image_environment() | environment)[variable])
        assert file is not None and file.exists()


def test_applications_find_the_same_code_and_folders_where_they_are_submitted_and_where_they_run():
    shared = {target: source for source, target in mounts("spark-worker")}
    assert {"/opt/airflow/strait"} == set(shared)
    for submitter in ("airflow-scheduler", "airflow-triggerer"):
        theirs = {target: source for source, target in mounts(submitter)}
        assert {target: theirs[target] for target in shared} == shared
    assert image_environment()["STRAIT_HOME"] == "/opt/airflow/strait"
    code = {"include", "spark_jobs", "dags", "plugins"}
    assert not code & {Path(source).name for service in ALL for source, _ in mounts(service)}, "it is in the image"
    assert services()["spark-worker"]["image"] == services()["airflow-scheduler"]["image"]


def test_airflow_submits_with_a_token_that_the_spark_master_asks_for():
    auth = runpy.run_path(str(PROJECT / "docker" / "spark_auth.py"))
    key = base64.urlsafe_b64encode(bytes(32)).decode("ascii")
    jwt.decode(auth["token"](key).strip(), bytes(32), algorithms=["HS256"])
    properties = dict(line.split() for line in auth["master"](key).splitlines())
    assert properties["spark.master.rest.filters"] == auth["FILTER"]
    assert properties[f"spark.{auth['FILTER']}.param.secretKey"] == key.rstrip("=")
    assert (
        "SPARK_REST_KEY"
        in services()["airflow-init"]["environment"].keys() & services()["spark-master"]["environment"].keys()
    )
    token = Path(services()["airflow-init"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).parent
    for link in load(PROJECT / "docker" / "links.yaml").links.values():
        assert link.spark.standalone.token_file == str(token / "spark_token")


def test_the_spark_master_keeps_what_runs_in_a_volume():
    auth = runpy.run_path(str(PROJECT / "docker" / "spark_auth.py"))
    properties = dict(line.split() for line in auth["master"]("k").splitlines())
    assert properties["spark.deploy.recoveryMode"] == "FILESYSTEM"
    assert properties["spark.deploy.recoveryDirectory"] in [target for _, target in mounts("spark-master")]


def test_the_two_clusters_are_two():
    source, destination = (services()[f"kafka-{end}"] for end in ("source", "destination"))
    assert source["environment"]["CLUSTER_ID"] != destination["environment"]["CLUSTER_ID"]
    for each in (source, destination):
        assert len(base64.urlsafe_b64decode(each["environment"]["CLUSTER_ID"] + "==")) == 16
    assert {volume.split(":")[0] for volume in source["volumes"]}.isdisjoint(
        volume.split(":")[0] for volume in destination["volumes"]
    )


@pytest.mark.parametrize("end", ["source", "destination"])
def test_clients_outside_are_told_the_published_port(end):
    kafka = services()[f"kafka-{end}"]
    (published,) = (substituted(port).split(":") for port in kafka["ports"])
    assert f"OUTSIDE://127.0.0.1:{published[1]}" in substituted(kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"])
    assert f"OUTSIDE://:{published[2]}" in kafka["environment"]["KAFKA_LISTENERS"]


def test_the_links_file_is_right_and_names_services_and_no_more_slots_than_cores():
    links = load(PROJECT / "docker" / "links.yaml")
    for cluster in links.clusters.values():
        assert cluster["bootstrap.servers"].removesuffix(":9092") in services()
    cores = int(example_variables()["SPARK_WORKERS"]) * int(example_variables()["SPARK_WORKER_CORES"])
    groups = [group for link in links.links.values() for group in link.groups.values()]
    assert sum(group.slots for group in groups) + len(groups) <= cores  # each application has a driver
    for link in links.links.values():
        assert (link.spark.master, link.spark.deploy_mode) == ("spark://spark-master:7077", "cluster")
    script = (PROJECT / "docker" / "spark_master.sh").read_text(encoding="utf-8")
    assert "--host spark-master --port 7077 --webui-port 8080" in script


def test_what_is_seeded_is_what_the_links_file_says():
    links = load(PROJECT / "docker" / "links.yaml")
    variables = json.loads((PROJECT / "docker" / "variables.json").read_text(encoding="utf-8"))
    connections = json.loads((PROJECT / "docker" / "connections.json").read_text(encoding="utf-8"))
    assert {name: connection["extra"] for name, connection in connections.items()} == {
        f"strait_{name}": dict(properties) for name, properties in links.clusters.items()
    }
    assert {name: parse_topics(json.dumps(value), where=name) for name, value in variables.items()} == {
        f"strait_topics_{name}": link.topics for name, link in links.links.items()
    }


def test_the_generator_takes_its_command():
    _, _, module, *arguments = services()["generator"]["command"]
    asked = importlib.import_module(module).parser().parse_args(arguments)
    for address in (asked.source, asked.destination):
        assert address.partition(":")[0] in ALL

"""What is asked of YARN and what its answers mean; the answers are a real ResourceManager's."""

import json
import threading
from collections.abc import Callable, Iterator
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.config.spark_connection import SparkConnection, with_connection
from strait.config.validation import validated
from strait.config.yarn_settings import Yarn
from strait.errors import ConfigError, LaunchError, SetupError
from strait.launch import launchers, submission
from strait.launch.base import State
from strait.launch.yarn import commands, manager, replies, site
from strait.launch.yarn.files import Files
from strait.launch.yarn.launcher import YarnLauncher
from strait.launch.yarn.manager import ResourceManager
from strait.launch.yarn.properties import yarn_properties

RECORDED = Path(__file__).with_name("yarn")
APPS = json.loads((RECORDED / "apps.json").read_text())
ATTEMPTS = json.loads((RECORDED / "attempts.json").read_text())
LOG = """\
Container: container_1_01_000001 on node1.example:11919
LogAggregationType: LOCAL
====================================================================
LogType:stdout
LogLastModifiedTime:Wed Nov 25 11:51:13 +0000 2026
LogLength:2069
LogContents:
two
lines
End of LogType:stdout.This log file belongs to a running container (container_1_01_000001) and so may not be complete.
***********************************************************************

"""
SETTINGS = Yarn(directory="hdfs:///user/strait")
SECRET = "never-to-be-seen"

Answer = Callable[[str, str, str], tuple[int, Any]]
"""Of method, path and body: status and JSON."""


def seen(name: str) -> replies.Seen:
    return next(one for one in replies.applications(APPS) if one.name == name)


@pytest.mark.parametrize(
    ("name", "state", "exit_code", "words"),
    [
        ("runs", State.RUNNING, None, ""),
        ("ends", State.FINISHED, 0, ""),
        ("leaves", State.DEAD, 3, "running 2 slots: needs 2 cores, has 1; resubmit"),
        ("exits", State.DEAD, 3, "User application exited with status 3"),
        ("dead", State.DEAD, 137, "Application application_1795608031328_0002 failed 1 times"),
        ("killed", State.DEAD, None, "Application application_1795608031328_0001 was killed by user dr.who"),
    ],
)
def test_what_the_resource_manager_says_of_an_application(name, state, exit_code, words):
    one = seen(name)
    assert (one.application.state, one.application.exit_code) == (state, exit_code)
    assert one.last_words.startswith(words) and bool(one.last_words) == bool(words)
    assert one.application.id == one.id
    assert one.application.log.startswith("http://node1.example:")


def test_an_application_waits_until_its_driver_has_registered():
    states = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")
    given = [APPS["apps"]["app"][0] | {"state": state, "finalStatus": "UNDEFINED"} for state in states]
    found = replies.applications({"apps": {"app": given}})
    assert {one.application.state for one in found} == {State.SUBMITTED}


def test_the_newest_is_first_and_none_is_none():
    times = [one.submitted_at_ms for one in replies.applications(APPS)]
    assert times == sorted(times, reverse=True)
    assert replies.applications({"apps": {}}) == replies.applications({"apps": None}) == []


def test_what_an_application_says_about_its_end_comes_back():
    said = replies.last_words(2, "spec: was submitted\n by another version")
    given = APPS["apps"]["app"][0] | {"state": "FINISHED", "finalStatus": "FAILED", "diagnostics": said}
    one = replies.applications({"apps": {"app": [given]}})[0]
    assert (one.exit_code, one.last_words) == (2, "spec: was submitted by another version")


def test_the_log_is_the_last_drivers():
    assert replies.driver_container(ATTEMPTS) == (
        "http://node2.example:30144",
        "container_1795608031328_0001_02_000001",
    )
    assert replies.driver_container({"appAttempts": None}) is None
    assert replies.log_contents(LOG) == "two\nlines\n"
    assert replies.log_contents("") == ""


def test_a_tag_fits_into_what_yarn_takes():
    assert replies.tag_of("strait", "strait-orders") == "strait:strait-orders"
    long, other = (replies.tag_of("strait", f"{'n' * 120}{end}") for end in "ab")
    assert len(long) <= 100 and long != other


def test_addresses_are_those_of_the_configuration(tmp_path: Path):
    plain = site.properties("<configuration><property><name>x</name><value>1</value></property></configuration>")
    assert site.addresses(plain) == ["http://127.0.0.1:8088"]
    manager = "yarn.resourcemanager"
    pair = {
        f"{manager}.ha.enabled": "true",
        f"{manager}.ha.rm-ids": "a, b",
        f"{manager}.hostname.a": "one",
        f"{manager}.webapp.address.b": "two:99",
    }
    assert site.addresses(pair) == ["http://one:8088", "http://two:99"]
    assert site.addresses({"yarn.http.policy": "HTTPS_ONLY", f"{manager}.hostname": "rm"}) == ["https://rm:8090"]
    rows = f"<property><name>{manager}.webapp.address</name><value>${{{manager}.hostname}}:7</value></property>"
    rows += f"<property><name>{manager}.hostname</name><value>rm</value></property>"
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{rows}</configuration>")
    own = SETTINGS.model_copy(update={"hadoop_conf_dir": str(tmp_path)})
    assert site.web_addresses(own) == ["http://rm:7"]
    assert site.web_addresses(own.model_copy(update={"resource_manager": ("http://knox/",)})) == ["http://knox"]


def test_without_hadoops_configuration_the_error_names_the_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(SetupError, match=r"HADOOP_CONF_DIR is not set \(set `spark.yarn.hadoop_conf_dir`"):
        site.web_addresses(SETTINGS)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"master": "yarn"}, "yarn: needed with `master: yarn`"),
        ({"yarn": {"directory": "hdfs:///x"}}, "yarn: only with `master: yarn`"),
        ({"master": "yarn", "yarn": {}}, "yarn.directory: "),
        ({"master": "yarn", "yarn": {"directory": "/user/strait"}}, "yarn.directory: "),
        ({"master": "yarn", "deploy_mode": "client", "yarn": {"directory": "hdfs:///x"}}, "deploy_mode: client"),
        (
            {"master": "yarn", "yarn": {"directory": "hdfs:///x"}, "conf": {"spark.yarn.tags": "t"}},
            "conf: spark.yarn.tags: set by Strait",
        ),
        ({"master": "yarn", "yarn": {"directory": "hdfs:///x", "quue": "q"}}, "did you mean"),
        (
            {"master": "spark://m:1", "deploy_mode": "cluster", "package": "hdfs:///p.tar.gz"},
            "package: a Hadoop URI is possible only with `master: yarn`",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(raw, why):
    with pytest.raises(ConfigError) as error:
        validated(Spark, raw, "spark")
    assert why in str(error.value)


def test_settings_survive_being_written_and_read():
    raw = {"master": "yarn", "yarn": {"directory": "hdfs:///x", "resource_manager": ["http://a:1"]}}
    given = validated(Spark, raw, "spark")
    assert given.deploy_mode == "cluster"
    assert validated(Spark, given.model_dump(), "spark") == given
    assert given.directories("/ledger", "/checkpoints/x") == ("hdfs:///x/ledger", "checkpoint")
    assert Spark().directories("/ledger", "/checkpoints/x") == ("/ledger", "/checkpoints/x")


def test_an_airflow_connection_may_name_the_cluster_and_its_queue():
    form = {"queue": "streams", "spark-binary": "spark-submit", "resource-manager": ["http://a:1"]}
    connection = SparkConnection("spark", "yarn", None, "", "", form)
    spark = with_connection(Spark(spark_conn_id="s", yarn=SETTINGS), connection, "c")
    assert (spark.master, spark.deploy_mode, spark.yarn.queue) == ("yarn", "cluster", "streams")
    assert spark.yarn.resource_manager == ("http://a:1",) and spark.yarn.directory == SETTINGS.directory
    with pytest.raises(ConfigError, match=r"extra.queue: needs `spark.yarn` in the links file"):
        with_connection(Spark(spark_conn_id="s"), connection, "c")
    client = connection._replace(extra={"deploy-mode": "client"})
    with pytest.raises(ConfigError, match="deploy_mode: client is not supported with yarn"):
        with_connection(Spark(spark_conn_id="s", yarn=SETTINGS), client, "c")


def test_a_new_place_is_noticed_by_what_finds_applications():
    """Whatever else changes applies at the next submission."""
    before = Spark(master="yarn", yarn=SETTINGS)

    def moved(**changes: object) -> bool:
        after = Spark(master="yarn", yarn=SETTINGS.model_copy(update=changes))
        return launchers._place(before) != launchers._place(after)

    assert moved(tag="other") and moved(hadoop_conf_dir="/other")
    assert not moved(queue="other")
    assert launchers._place(before) != launchers._place(Spark())


def spec() -> AppSpec:
    return AppSpec(
        link="orders", group="default", source_name="a", source={"sasl.password": SECRET}, destination_name="b",
        destination={}, slots=3, slot_memory_bytes=64 << 20, ledger_seconds=60, ledger_dir="l", checkpoint_dir="c",
    )  # fmt: skip


def test_properties_ask_for_a_container_for_each_slot_and_hold_no_secret():
    spark = Spark(master="yarn", yarn=SETTINGS, conf={"spark.executor.memory": "1g"})
    found = yarn_properties("strait-orders", spec(), Path("/s/spec.json"), spark, SETTINGS, "hdfs:///x/jars.zip")
    assert (found["spark.executor.instances"], found["spark.executor.cores"]) == ("3", "1")
    assert found["spark.executor.memoryOverhead"] == "576m"
    assert found["spark.executor.memory"] == "1g"
    assert found["spark.yarn.tags"] == "strait,strait:strait-orders"
    assert found["spark.yarn.archive"] == "hdfs:///x/jars.zip" and "spark.yarn.jars" not in found
    assert found["spark.files"].startswith("/s/spec.json,")
    assert SECRET not in str(found)
    spark = spark.model_copy(update={"package": "hdfs:///x/p.tar.gz"})
    found = yarn_properties("strait-orders", spec(), Path("/s/spec.json"), spark, SETTINGS, "local:/jars/*")
    assert found["spark.archives"] == "hdfs:///x/p.tar.gz#environment"
    assert found["spark.pyspark.python"] == "./environment/bin/python"
    assert found["spark.yarn.jars"] == "local:/jars/*" and "spark.yarn.archive" not in found


@pytest.mark.parametrize(
    ("complaints", "cause"),
    [
        ("cat: `file:///x': No such file or directory\n", "`file:///x': No such file or directory"),
        (
            "WARNING: Using incubator modules: jdk.incubator.vector\n"
            'Exception in thread "main" java.lang.IllegalArgumentException: Required AM memory (1 MB) is above\n'
            "\tat org.apache.spark.deploy.yarn.Client.verifyClusterResources(Client.scala:422)\n",
            "IllegalArgumentException: Required AM memory (1 MB) is above",
        ),
        ("", "no reason was given"),
    ],
)
def test_the_cause_is_one_line_of_what_a_command_printed(complaints, cause):
    assert commands.Done(1, b"", complaints).cause == cause


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Starts a server of such answers; returns its address."""
    servers = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                status, said = answer(self.command, self.path, body)
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", said)
                self.end_headers()
                self.wfile.write((said if isinstance(said, str) else json.dumps(said)).encode())

            do_PUT = do_GET

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def state_of(state: str) -> dict[str, Any]:
    return {"clusterInfo": {"state": "STARTED", "haState": state}}


def active(answer: Answer) -> Answer:
    """Of a ResourceManager that knows all applications."""
    return lambda *request: (200, state_of("ACTIVE")) if request[1].endswith("/info") else answer(*request)


def test_only_the_active_one_is_asked(serve):
    asked = []
    one = serve(active(lambda *request: (asked.append(request), (200, APPS))[1]))
    standby = serve(lambda *_: (200, state_of("STANDBY")))
    manager = ResourceManager(lambda: [standby, one], "strait")
    assert [found.name for found in manager.of_name("runs")] == ["runs"]
    manager.kill(seen("runs"))
    assert asked[0][1].endswith("/apps?applicationTags=strait%3Aruns")
    assert asked[1] == (
        "PUT",
        "/ws/v1/cluster/apps/application_1795608031328_0008/state?user.name=root",
        '{"state": "KILLED"}',
    )


def test_one_that_has_not_recovered_its_applications_yet_is_not_believed_to_have_none(serve, tmp_path: Path):
    address = serve(lambda *request: (200, state_of("INITIALIZING") if request[1].endswith("/info") else {"apps": {}}))
    settings = SETTINGS.model_copy(update={"resource_manager": (address,)})
    launcher = YarnLauncher(Spark(master="yarn", yarn=settings), settings, tmp_path)
    assert launcher.state("x").state is State.UNKNOWN
    with pytest.raises(LaunchError, match="is initializing"):
        launcher.stop("x")


def test_a_refusal_is_an_error_and_a_missing_one_is_not(serve):
    replies_of = {"403": (403, {"RemoteException": {"message": "User x is not\nallowed"}}), "404": (404, {})}
    for status, reply in replies_of.items():
        manager = ResourceManager(lambda: [serve(active(lambda *_, reply=reply: reply))], "strait")  # noqa: B023
        if status == "404":
            manager.kill(seen("runs"))
        else:
            with pytest.raises(LaunchError, match="HTTP 403: User x is not allowed"):
                manager.kill(seen("runs"))


@pytest.mark.parametrize("reply", [(200, "<html>"), (200, {"something": 1}), (500, "")])
def test_without_an_answer_nothing_is_known_and_nothing_is_submitted(serve, reply, tmp_path: Path):
    settings = SETTINGS.model_copy(update={"resource_manager": (serve(active(lambda *_: reply)),)})
    launcher = YarnLauncher(Spark(master="yarn", yarn=settings), settings, tmp_path)
    assert launcher.state("x").state is State.UNKNOWN
    assert launcher.history("x")[0].state is State.UNKNOWN
    spec().write(tmp_path / "s.json")
    with pytest.raises(LaunchError, match="looking for applications"):
        launcher.submit("x", tmp_path / "s.json", Spark())
    assert [one.state for one in launcher.list()] == []
    with pytest.raises(LaunchError):
        launcher.stop("x")


def test_a_case_apart_is_another_application(serve, tmp_path: Path):
    """YARN compares tags in lower case."""
    settings = SETTINGS.model_copy(update={"resource_manager": (serve(active(lambda *_: (200, APPS))),)})
    launcher = YarnLauncher(Spark(master="yarn", yarn=settings), settings, tmp_path)
    assert launcher.state("RUNS") is None
    assert launcher.state("runs").state is State.RUNNING
    assert [one.name for one in launcher.list()] == ["dead", "ends", "exits", "killed", "leaves", "runs"]
    assert launcher.cause(launcher.state("leaves")) == ("exit code 3: running 2 slots: needs 2 cores, has 1; resubmit")
    assert "was killed by user dr.who" in launcher.cause(launcher.state("killed"))


class FakeCommands:
    """Of Hadoop: ends as the test says."""

    def __init__(self, *done: commands.Done) -> None:
        self.done = list(done)

    def hadoop_fs(self, *_: str) -> commands.Done:
        return self.done.pop(0)


def test_only_a_spec_that_is_not_there_or_does_not_parse_is_none():
    """Whoever took a file system that is away for a lost spec would replace a healthy application."""
    files = Files(SETTINGS)
    answers = [
        commands.Done(1, b"", "WARN x\ncat: `hdfs:///x/spec.json': No such file or directory\n"),
        commands.Done(0, b"{}", ""),
        commands.Done(1, b"", "cat: Call From a to b:8020 failed on connection exception: Connection refused\n"),
    ]
    files._commands = FakeCommands(*answers)  # type: ignore[assignment]
    assert files.spec(seen("runs")) is None
    assert files.spec(seen("runs")) is None
    with pytest.raises(LaunchError, match=r"application runs: reading its spec: .*Connection refused"):
        files.spec(seen("runs"))


def test_copies_of_specs_that_others_submitted_are_dropped_as_any(serve, tmp_path: Path):
    settings = SETTINGS.model_copy(update={"resource_manager": (serve(active(lambda *_: (200, APPS))),)})
    launcher = YarnLauncher(Spark(master="yarn", yarn=settings), settings, tmp_path)
    spec().write(tmp_path / "s.json")
    answer = commands.Done(0, (tmp_path / "s.json").read_bytes(), "")
    launcher._files._commands = FakeCommands(answer)  # type: ignore[assignment]
    for number in range(submission.KEPT):
        (tmp_path / "runs" / str(number)).mkdir(parents=True)
    assert launcher.spec(seen("runs").application) == spec()
    assert len(submission.of_name(tmp_path / "runs")) == submission.KEPT


def test_what_earlier_submissions_left_behind_does_not_block_the_next(serve, tmp_path: Path, monkeypatch, caplog):
    def refuse(*_: object) -> None:
        raise LaunchError("YARN: removing staging folders: Permission denied")

    settings = SETTINGS.model_copy(update={"resource_manager": (serve(active(lambda *_: (200, APPS))),)})
    launcher = YarnLauncher(Spark(master="yarn", yarn=settings), settings, tmp_path)
    spec().write(tmp_path / "s.json")
    monkeypatch.setattr(launcher._files, "remove", refuse)
    monkeypatch.setattr(launcher._files, "spark_jars", lambda: "hdfs:///x/jars.zip")
    monkeypatch.setattr(YarnLauncher, "_accepted", lambda *_: seen("runs"))
    monkeypatch.setattr(commands.Commands, "submit", lambda *_, **__: None)
    assert launcher.submit("dead", tmp_path / "s.json", Spark()).id == seen("runs").id
    assert "application dead: YARN: removing staging folders: Permission denied" in caplog.text


def test_an_answer_that_breaks_off_is_none(monkeypatch, tmp_path: Path):
    class Opener:
        def open(self, *_: object, **__: object) -> None:
            raise IncompleteRead(b"")

    monkeypatch.setattr(manager, "_OPENER", Opener())
    broken = ResourceManager(lambda: ["http://a:1"], "strait")
    with pytest.raises(LaunchError, match="looking for applications: http://a:1: answers what no ResourceManager"):
        broken.of_name("x")
    monkeypatch.setattr(broken, "_active", lambda *_: "http://a:1")
    with pytest.raises(LaunchError, match="looking for applications: http://a:1: answers what no ResourceManager"):
        broken.of_name("x")
    monkeypatch.setattr(broken, "_ask", lambda *_: ATTEMPTS)
    assert broken.log_tail("x", "stdout", 1) == ""

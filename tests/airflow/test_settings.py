"""Where configuration comes from. Connections and Variables are given by the environment, as Airflow allows."""

import json
import re
from pathlib import Path

import pytest
import yaml

from strait.errors import ClusterUnavailable, ConfigError
from strait_airflow import settings
from strait_airflow.errors import airflow_errors, one_line

pytestmark = [pytest.mark.airflow, pytest.mark.core]

CLUSTERS = {"a": {"bootstrap.servers": "file:1", "client.id": "from-file"}, "b": {"bootstrap.servers": "file:2"}}
LINK = {"source": "a", "destination": "b", "topics": {"include": ["from-file"]}}
ON_SPARK = LINK | {"spark": {"spark_conn_id": "my_spark", "driver_memory": "1g"}}


@pytest.fixture(autouse=True)
def links_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "links.yaml"
    broken = {"source": "a", "destination": "nowhere"}
    file.write_text(
        yaml.safe_dump({"clusters": CLUSTERS, "links": {"shop": LINK, "broken": broken, "spark": ON_SPARK}})
    )
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))


def connect(monkeypatch: pytest.MonkeyPatch, cluster: str, extra: str) -> None:
    value = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv(f"AIRFLOW_CONN_STRAIT_{cluster.upper()}", value)


def test_without_a_connection_or_variable_the_links_file_is_all():
    file = settings.with_live_topics(settings.clusters_of("shop"), "shop")
    assert file.clusters == CLUSTERS
    assert file.links["shop"].topics.include == ("from-file",)


def test_a_connection_goes_over_the_properties_of_its_cluster_alone(monkeypatch):
    connect(monkeypatch, "a", json.dumps({"bootstrap.servers": "connection:1", "sasl.password": "secret"}))
    clusters = settings.clusters_of("shop").clusters
    assert clusters["a"] == {
        "bootstrap.servers": "connection:1",
        "client.id": "from-file",
        "sasl.password": "secret",
    }
    assert clusters["b"] == CLUSTERS["b"]


def test_numbers_and_booleans_of_a_connection_are_spelt_as_librdkafka_wants_them(monkeypatch):
    connect(monkeypatch, "a", json.dumps({"socket.timeout.ms": 6000, "enable.ssl.certificate.verification": False}))
    properties = settings.clusters_of("shop").clusters["a"]
    assert properties["socket.timeout.ms"] == "6000"
    assert properties["enable.ssl.certificate.verification"] == "false"


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"plugin.library.paths": "mine.so"}, "`plugin.library.paths` is not a property that a cluster may have"),
        ({"sasl.password": "${directory:/etc:shadow}"}, "`sasl.password` refers to a file in /etc"),
        ({"sasl.password": "${directory:/run/secrets/../other:x}"}, "not below the folder for secrets"),
        ({"sasl.oauthbearer.token.file": "/etc/shadow"}, "`sasl.oauthbearer.token.file` is not below the folder"),
        ({"sasl.oauthbearer.token.command": "sh -c id"}, "`sasl.oauthbearer.token.command` runs a program that is not"),
        ({"sasl.oauthbearer.method": "msk_iam"}, "needs `bootstrap.servers` of Amazon MSK"),
    ],
)
def test_a_connection_loads_no_code_and_sends_no_file_of_its_choice(monkeypatch, extra, problem):
    for folder in ("", "/run/secrets"):
        monkeypatch.setenv("STRAIT_SECRETS_DIR", folder)
        connect(monkeypatch, "a", json.dumps(extra))
        with pytest.raises(ConfigError, match=re.escape(problem)):
            settings.clusters_of("shop")
    connect(monkeypatch, "a", json.dumps({"sasl.password": "${directory:/run/secrets/kafka:x}"}))
    assert settings.clusters_of("shop").clusters["a"]["sasl.password"] == "${directory:/run/secrets/kafka:x}"


@pytest.mark.parametrize("extra", ["[1]", '{"sasl.password": ["hidden"]}'])
def test_a_connection_of_another_form_is_refused_without_its_values(monkeypatch, extra):
    connect(monkeypatch, "a", extra)
    with pytest.raises(ConfigError, match="Airflow Connection strait_a") as refused:
        settings.clusters_of("shop")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "connection",
    [
        "spark://master:7077/?deploy-mode=cluster",
        json.dumps({"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": {"deploy-mode": "cluster"}}),
    ],
)
def test_a_connection_names_the_spark_cluster_of_a_link(monkeypatch, connection):
    monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", connection)
    spark = settings.clusters_of("spark").links["spark"].spark
    assert (spark.master, spark.deploy_mode, spark.driver_memory) == ("spark://master:7077", "cluster", "1g")


def test_a_spark_connection_that_does_not_exist_is_no_other_master():
    with pytest.raises(ConfigError, match=r"Airflow Connection my_spark: does not exist \(create it"):
        settings.clusters_of("spark")


def test_what_a_spark_connection_says_in_vain_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_MY_SPARK", "spark://master:7077/?spark-home=%2Fopt")
    with pytest.raises(ConfigError, match=r"Airflow Connection my_spark: extra.spark-home: is not used"):
        settings.clusters_of("spark")


def test_the_variable_replaces_the_whole_topics_block(monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_STRAIT_TOPICS_SHOP", '{"regex": ["live.*"]}')
    topics = settings.with_live_topics(settings.clusters_of("shop"), "shop").links["shop"].topics
    assert (topics.include, topics.regex) == ((), ("live.*",))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"exclud": []}', '{"regex": ["("]}'])
def test_an_invalid_variable_is_refused_by_its_name_and_touches_nothing_else(monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_VAR_STRAIT_TOPICS_SHOP", text)
    file = settings.clusters_of("shop")
    with pytest.raises(ConfigError, match="Airflow Variable strait_topics_shop"):
        settings.with_live_topics(file, "shop")


def test_a_broken_link_is_said_by_itself_alone():
    with pytest.raises(ConfigError, match="nowhere"):
        settings.clusters_of("broken")
    assert settings.clusters_of("shop")


@pytest.mark.parametrize(
    "links", [{"a b": LINK, "a_b": LINK}, {"x": LINK | {"approval": "required"}, "x_approval": LINK}]
)
def test_links_whose_dags_would_be_one_are_refused_each(tmp_path, monkeypatch, links):
    file = tmp_path / "namesakes.yaml"
    file.write_text(yaml.safe_dump({"clusters": CLUSTERS, "links": links | {"shop": LINK}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    first, second = sorted(links)
    for link, other in ((first, second), (second, first)):
        with pytest.raises(ConfigError, match=f"link {link}: its DAG strait_.* would be that of link {other}, too"):
            settings.clusters_of(link)
    assert settings.clusters_of("shop")


def test_only_what_trying_again_may_help_is_retried():
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowFailException), airflow_errors():
        raise ConfigError("links file", ["wrong"])
    with pytest.raises(AirflowException) as retried, airflow_errors():
        raise ClusterUnavailable("a", "connecting: nobody answers")
    assert not isinstance(retried.value, AirflowFailException)


def test_several_problems_stand_in_one_line():
    text = str(ConfigError("links file x", ["first", "second"], hint="mend them"))
    assert one_line(text) == "links file x: first; second (mend them)"


def test_watches_share_what_one_of_them_has_just_read_of_a_connection(monkeypatch):
    read, now = [], [100.0]
    monkeypatch.setattr(
        settings, "_extra", lambda name: read.append(name) or json.dumps({"client.id": f"at-{now[0]:g}"})
    )
    monkeypatch.setattr(settings.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(settings, "_shared", settings._Shared())
    first, second = settings.live_settings("shop"), settings.live_settings("spark")
    assert read == ["strait_a", "strait_b"]
    assert second.error is not None and second.file is None  # its Spark Connection does not exist
    now[0] += settings.SHARED_SECONDS
    later = settings.live_settings("shop")
    assert (first.file.clusters["a"]["client.id"], later.file.clusters["a"]["client.id"]) == ("at-100", "at-102")
    assert first.digest != later.digest
    now[0] += settings.SHARED_SECONDS / 2
    assert settings.clusters_of("shop").clusters["a"]["client.id"] == "at-103"  # a run reads what is true now

"""The `spark` block, and what an Airflow Connection says over it."""

import pytest

from strait.config.links import Spark
from strait.config.spark_connection import SparkConnection, with_connection
from strait.config.validation import validated
from strait.errors import ConfigError

FORM = {"queue": "", "deploy-mode": "cluster", "spark-binary": "spark-submit", "namespace": None, "rest-port": "6066"}


def connection(**changes: object) -> SparkConnection:
    plain = SparkConnection("spark", "spark://master", 7077, "", "", FORM)
    return plain._replace(**changes)


def refused(raw: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as error:
        validated(Spark, raw, "spark")
    return str(error.value)


def test_without_a_word_the_driver_runs_where_it_is_submitted():
    assert (Spark().master, Spark().deploy_mode) == ("local", "client")
    assert Spark(master="spark://m:7077").deploy_mode == "client"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"deploy_mode": "cluster"}, "deploy_mode: cluster needs the URL of a Spark cluster"),
        (
            {"master": "spark://m:7077", "standalone": {"driver_cores": 2}},
            "standalone: only with `deploy_mode: cluster`",
        ),
        ({"master": "spark://m:7077", "package": "/p.tar.gz"}, "package: only with `deploy_mode: cluster`"),
        ({"spark_conn_id": "s", "master": "spark://m:7077"}, "master: said by the Connection"),
        ({"master": "spark://m:7077/path"}, "master: "),
        ({"master": "spark://m:7077", "deploy_mode": "clutser"}, "did you mean"),
        ({"master": "spark://m:7077", "deploy_mode": "cluster", "package": "p.tar.gz"}, "package: "),
        ({"standalone": {"rest_url": "http://user:secret@m:6066"}}, "standalone.rest_url: "),
    ],
)
def test_what_does_not_fit_is_refused(raw, why):
    assert why in refused(raw)


def test_a_block_survives_being_written_and_read():
    given = {"master": "spark://m:7077", "deploy_mode": "cluster", "standalone": {"web_url": "http://m:1"}}
    spark = validated(Spark, given, "spark")
    assert validated(Spark, spark.model_dump(), "spark") == spark
    assert validated(Spark, Spark().model_dump(), "spark") == Spark()


def test_a_connection_as_the_form_makes_it_names_master_and_deploy_mode():
    spark = with_connection(Spark(spark_conn_id="s", driver_memory="1g"), connection(), "c")
    assert (spark.master, spark.deploy_mode, spark.driver_memory) == ("spark://master:7077", "cluster", "1g")
    assert spark.spark_conn_id is None
    assert spark.standalone.rest_url is None


@pytest.mark.parametrize(
    ("host", "port", "master"),
    [
        ("master", 7077, "spark://master:7077"),
        ("spark://a:1,b:2", None, "spark://a:1,b:2"),
        ("spark://m", 1, "spark://m:1"),
    ],
)
def test_a_host_is_taken_with_and_without_its_scheme(host, port, master):
    assert with_connection(Spark(spark_conn_id="s"), connection(host=host, port=port), "c").master == master


def test_the_connection_may_name_the_addresses_of_the_master():
    extra = FORM | {"rest-scheme": "https", "web-url": "http://m:1", "token-file": "/t"}
    own = with_connection(Spark(spark_conn_id="s"), connection(extra=extra), "c").standalone
    assert (own.rest_url, own.web_url, own.token_file) == ("https://master:6066", "http://m:1", "/t")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"conn_type": "kafka"}, "has type 'kafka', not 'spark'"),
        ({"host": ""}, "has no host"),
        ({"password": "hidden"}, "password: is not used"),
        ({"extra": FORM | {"keytab": "hidden"}}, "extra.keytab: is not used: set `spark.conf` `spark.kerberos.keytab`"),
        ({"extra": FORM | {"principal": "me@X"}}, "extra.principal: is not used: set `spark.conf` `spark.kerberos.pri"),
        (
            {"extra": FORM | {"spark-binary": "spark3-submit"}},
            "extra.spark-binary: is not used: Strait runs the `spark-submit`",
        ),
        ({"extra": {"deploy_mode": "cluster"}}, "did you mean 'deploy-mode'"),
        ({"extra": {"deploy-mode": "both"}}, "deploy_mode: "),
        ({"host": "local[*]", "port": None}, "master: "),
    ],
)
def test_a_connection_that_says_what_is_not_used_is_refused_without_its_values(changes, why):
    with pytest.raises(ConfigError) as refusal:
        with_connection(Spark(spark_conn_id="s"), connection(**changes), "Airflow Connection s")
    assert why in str(refusal.value)
    assert "hidden" not in str(refusal.value)

"""pyspark and pyspark-client write the same files: with unequal versions every Python worker dies."""

from importlib.metadata import files, version


def test_pyspark_its_jars_and_its_client_have_one_version() -> None:
    jars = [path.name for path in files("pyspark") or () if path.name.startswith("spark-core_")]
    assert version("pyspark") == version("pyspark-client")
    assert [jar.removesuffix(".jar").rpartition("-")[2] for jar in jars] == [version("pyspark")]

"""A JVM with Kafka's jars that this process talks to, for what only Kafka's own classes do."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyspark
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from strait.embedded import jars
from strait.launch.java import find_java

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"


@contextmanager
def kafka_jvm(*more: Path) -> Iterator[Any]:
    """It ends with the block, and with this process however that ends. ``more``: further jars."""
    bridge = next(_SPARK_JARS.glob("py4j-*.jar"))
    port, process = launch_gateway(
        classpath=":".join([jars.classpath(), *map(str, more)]),
        jarpath=str(bridge),
        java_path=str(find_java()),
        javaopts=["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    # A Spark session leaves its translation of Java's exceptions in this process, and needs a session for it. Each
    # iteration over a collection of Java ends with an exception.
    try:
        with patch.object(java_gateway, "get_return_value", protocol.get_return_value):
            yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(30)  # py4j has threads of its own that read its output, and close it when it ends


def compile_java(source: Path, folder: Path) -> None:
    """Compile a class for brokers into a folder for their class path. By Janino, which Spark has, since a machine may have
    no compiler of Java; it knows Java 8 without lambdas."""
    janino = (next(_SPARK_JARS.glob(f"{name}-*.jar")) for name in ("janino", "commons-compiler"))
    with kafka_jvm(*janino) as jvm:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source.read_text())
        for name, content in dict(compiler.getBytecodes()).items():
            file = folder / f"{name.replace('.', '/')}.class"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def java_map(jvm: Any, entries: Mapping[str, str]) -> Any:
    """A java.util.HashMap of them."""
    found = jvm.java.util.HashMap()
    for name, value in entries.items():
        found.put(name, value)
    return found

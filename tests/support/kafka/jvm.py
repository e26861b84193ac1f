"""A JVM with Kafka's jars that this process talks to, for what only Kafka's own classes do."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from strait.embedded import jars
from strait.launch.java import find_java


@contextmanager
def kafka_jvm() -> Iterator[Any]:
    """It ends with the block, and with this process however that ends."""
    bridge = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    port, process = launch_gateway(
        classpath=jars.classpath(),
        jarpath=str(bridge),
        java_path=str(find_java()),
        javaopts=["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(30)  # py4j has threads of its own that read its output, and close it when it ends


def java_map(jvm: Any, entries: Mapping[str, str]) -> Any:
    """A java.util.HashMap of them."""
    found = jvm.java.util.HashMap()
    for name, value in entries.items():
        found.put(name, value)
    return found

"""What a cluster on this machine leaves if it cannot start."""

import os
import socket
from pathlib import Path

import pytest

from strait.embedded.kafka import Cluster
from strait.embedded.ports import free_ports
from strait.errors import SetupError


def test_a_node_that_ran_before_is_stopped_too_if_the_cluster_cannot_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cluster = Cluster(tmp_path, 2, ports=[taken.getsockname()[1], *free_ports(1)])
        running = cluster._process(cluster._layout.controller)
        running.record.parent.mkdir()
        log = tmp_path / "log"
        running.start(["sleep", "60"], environment=os.environ, log=log, directory=tmp_path)
        with pytest.raises(SetupError, match="the port is in use"):
            cluster.start()
    assert running.pid is None
    assert not running.members()

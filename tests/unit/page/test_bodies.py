"""Bodies of requests to Airflow's API server: no more of them is read than a request needs."""

import asyncio
from typing import Any

from strait_airflow.bodies import MOST_BYTES, BoundedBodies


class Client:
    """Sends a body in pieces, and keeps what it is answered."""

    def __init__(self, pieces: int, size: int) -> None:
        self.left, self.size, self.sent = pieces, size, 0
        self.answers: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        self.left -= 1
        self.sent += self.size
        return {"type": "http.request", "body": b"x" * self.size, "more_body": self.left > 0}

    async def send(self, message: dict[str, Any]) -> None:
        self.answers.append(message)

    def ask(self, method: str = "POST") -> list[bytes]:
        """What the application reads."""
        read: list[bytes] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            message = await receive()
            read.append(message["body"])
            while message["more_body"]:
                message = await receive()
                read.append(message["body"])

        scope = {"type": "http", "method": method, "path": "/"}
        asyncio.run(BoundedBodies(app)(scope, self.receive, self.send))
        return read


def test_a_body_reaches_the_application_whole() -> None:
    client = Client(pieces=4, size=MOST_BYTES // 4)
    assert client.ask() == [b"x" * MOST_BYTES]
    assert client.answers == []


def test_an_endless_body_is_refused_after_a_mebibyte_and_never_reaches_it() -> None:
    client = Client(pieces=1 << 30, size=64 << 10)
    assert client.ask() == []
    assert [answer.get("status") for answer in client.answers if "status" in answer] == [413]
    assert client.sent <= MOST_BYTES + (64 << 10)


def test_a_request_that_only_reads_passes_as_it_comes() -> None:
    client = Client(pieces=3, size=10)
    assert client.ask("GET") == [b"x" * 10] * 3

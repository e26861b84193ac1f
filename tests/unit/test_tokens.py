"""Tokens that Strait gets itself: from a command, a file, and AWS's signer."""

import base64
import json
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import jwt
import pytest

from strait.config.oauth import problems, region_of
from strait.errors import ClusterUnavailable, NotAuthorized
from strait.net.oauth import Tokens
from strait.tokens import sources
from strait.tokens.token import UNKNOWN_LIFE_SECONDS, parse

NOW = 1_800_000_000.0
SASL = {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER", "bootstrap.servers": "b:1"}
KEY = "a-key-of-the-tests-that-is-long-enough"
MSK = "b-1.orders.abc123.c2.kafka.eu-central-1.amazonaws.com:9098"


def of(method: str, **properties: str) -> dict[str, str]:
    return (
        SASL
        | {f"sasl.oauthbearer.{key.replace('_', '.')}": value for key, value in properties.items()}
        | {"sasl.oauthbearer.method": method}
    )


class TestText:
    @pytest.mark.parametrize(
        ("text", "expires_at"),
        [
            ("opaque", NOW + UNKNOWN_LIFE_SECONDS),
            ("opaque\n", NOW + UNKNOWN_LIFE_SECONDS),
            (jwt.encode({"exp": NOW + 77}, KEY), NOW + 77),
            ("not.a.jwt", NOW + UNKNOWN_LIFE_SECONDS),
            ('{"access_token": "opaque", "expires_in": 60}', NOW + 60),
            ('{"access_token": "opaque", "expires_in": "60"}', NOW + 60),
            ('{"accessToken": "opaque", "expiresOn": "2026-11-26 17:00:00.000000", "expires_on": 1800000009}', NOW + 9),
            ('{"token": "opaque", "expiry": "2027-01-15T08:00:30Z"}', NOW + 30),
            ('{"token": "opaque", "expires_at": 1800000010000}', NOW + 10),
            ('{"token": "opaque", "expiry": "2027-01-15T08:00:30"}', NOW + UNKNOWN_LIFE_SECONDS),
        ],
    )
    def test_the_lifetime_is_as_the_text_tells(self, text: str, expires_at: float) -> None:
        token = parse(text, NOW)
        assert token.expires_at == expires_at
        assert token.value in text
        assert token.value not in repr(token)

    @pytest.mark.parametrize(
        "text",
        ["", "two words", "a\nb", '{"secret": "s3cret"}', "{s3cret", '{"token": 7}', "é", "x" * 70_000, "[" * 99],
    )
    def test_what_is_no_token_is_refused_without_its_text(self, text: str) -> None:
        if text == "[" * 99:
            assert parse(text, NOW).value == text  # for the broker to refuse
            return
        with pytest.raises(ValueError, match="it is n") as refused:
            parse(text, NOW)
        assert "s3cret" not in str(refused.value)


class TestCommand:
    def test_it_is_run_without_a_shell_and_again_after_half_of_its_tokens_life(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counter = tmp_path / "runs"
        script = tmp_path / "sign in.py"
        script.write_text(
            "import sys\n"
            f"open({str(counter)!r}, 'a').write('x')\n"
            'print(\'{"access_token": "\' + sys.argv[1] + \'", "expires_in": 100}\')\n'
        )
        properties = of("command", token_command=f"{sys.executable} '{script}' $HOME;ls")
        for _ in range(3):
            assert Tokens("a").provider(properties).token() == "$HOME;ls"
        assert counter.read_text() == "x", "both clients of a process share it"
        now = time.time()
        monkeypatch.setattr("strait.tokens.sources.time.time", lambda: now + 51.0)
        Tokens("a").provider(properties | {"sasl.oauthbearer.extensions": "pool=7"})
        assert counter.read_text() == "xx"

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("/nowhere/at-all", "running /nowhere/at-all for a token: No such file"),
            (f"{sys.executable} -c 'print(\"s3cret it is\"); raise SystemExit(3)'", "exit code 3"),
            (f"{sys.executable} -c 'print(\"s3cret it is\")'", "neither a token alone nor JSON"),
        ],
    )
    def test_one_that_fails_says_why_but_nothing_that_it_printed(self, command: str, said: str) -> None:
        with pytest.raises(ClusterUnavailable, match=said) as failed:
            sources.get("a", of("command", token_command=command))
        assert "s3cret" not in str(failed.value)

    def test_one_that_hangs_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sources, "COMMAND_SECONDS", 0.2)
        with pytest.raises(ClusterUnavailable, match=r"not done after 0\.2 s"):
            sources.get("a", of("command", token_command=f"{sys.executable} -c 'import time; time.sleep(60)'"))


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    properties = of("file", token_file=str(file))
    with pytest.raises(ClusterUnavailable, match=r"reading a token from .*: No such file"):
        sources.get("a", properties)
    for value in ("one", "two"):
        file.write_text(value + "\n")
        assert sources.get("a", properties).value == value
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ClusterUnavailable, match="not UTF-8"):
        sources.get("a", properties)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[dict[str, str] | None], None]]:
    """An endpoint for credentials, as containers of AWS have one, and nothing else that AWS's SDK would find."""
    answer: list[dict[str, str] | None] = [None]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer[0]).encode()
            self.send_response(200 if answer[0] else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Tests need no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_port}/credentials")
    monkeypatch.setattr(sources, "_cache", {})
    yield lambda given: answer.__setitem__(0, given)
    server.shutdown()
    thread.join()
    server.server_close()


class TestMskIam:
    def test_the_token_is_signed_with_the_credentials_of_the_host(
        self, aws: Callable[[dict[str, str] | None], None]
    ) -> None:
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        aws({"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "s3cret", "Token": "session", "Expiration": later})
        token = sources.get("a", of("msk_iam") | {"bootstrap.servers": MSK})
        assert 800 < token.expires_at - time.time() <= 900
        signed = urllib.parse.urlsplit(base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode())
        assert signed.hostname == "kafka.eu-central-1.amazonaws.com"
        query = urllib.parse.parse_qs(signed.query)
        assert query["Action"] == ["kafka-cluster:Connect"]
        assert query["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
        assert query["X-Amz-Security-Token"] == ["session"]
        assert "s3cret" not in signed.geturl()

    def test_a_host_without_credentials_is_told_so(
        self, aws: Callable[[dict[str, str] | None], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        aws(None)
        with pytest.raises(ClusterUnavailable, match=r"signing a token .* in eu-central-1: .*credentials"):
            sources.get("a", of("msk_iam") | {"bootstrap.servers": MSK})
        monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        with pytest.raises(NotAuthorized, match="eu-central-1: no credentials are found"):
            sources.get("a", of("msk_iam") | {"bootstrap.servers": MSK})

    def test_the_region_is_in_the_brokers_names_or_set(self) -> None:
        assert region_of({"bootstrap.servers": MSK}) == "eu-central-1"
        assert (
            region_of({"bootstrap.servers": "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"}) == "us-east-1"
        )
        assert region_of({"bootstrap.servers": MSK, "sasl.oauthbearer.aws.region": "us-west-2"}) == "us-west-2"
        (problem,) = problems(of("msk_iam"))
        assert "`sasl.oauthbearer.aws.region` is required" in problem
        (problem,) = problems(of("msk_iam") | {"bootstrap.servers": MSK, "security.protocol": "sasl_plaintext"})
        assert "must be sasl_ssl" in problem


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (of("command"), "must be a command line"),
        (of("command", token_command="az 'unfinished"), "must be a command line"),
        (of("file"), "must be the path"),
        (of("gssapi"), "must be one of oidc, msk_iam, command, file"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_tried(properties: dict[str, str], said: str) -> None:
    (problem,) = problems(properties)
    assert said in problem

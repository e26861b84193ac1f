"""Tokens from a token endpoint: asked for as librdkafka asks, used again for a while, never told to anybody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strait.config.oauth import problems
from strait.errors import ClusterUnavailable, NotAuthorized
from strait.net.oauth import Tokens
from support.security.pki import Authority
from support.security.tokens import TokenEndpoint

SECRET = "a-Secret"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[TokenEndpoint]:
    with TokenEndpoint({"me": SECRET}, tmp_path / "jwks.json").running() as running:
        yield running


def properties(endpoint: TokenEndpoint, **changed: str) -> dict[str, str]:
    right = {
        "method": "oidc",
        "client.id": "me",
        "client.secret": SECRET,
        "token.endpoint.url": endpoint.url,
        "scope": "copying",
        "extensions": "a=1,b=x=y",
    }
    return {f"sasl.oauthbearer.{key}": value for key, value in (right | changed).items()}


def test_a_token_is_asked_for_and_comes_with_its_extensions(endpoint: TokenEndpoint) -> None:
    provider = Tokens("a").provider(properties(endpoint))
    assert [provider.token()] == endpoint.given
    assert provider.extensions() == {"a": "1", "b": "x=y"}
    assert endpoint.asked == [{"grant_type": ["client_credentials"], "scope": ["copying"]}]


def test_an_endpoint_behind_tls_is_asked_only_if_it_is_trusted(tmp_path: Path) -> None:
    authority, stranger = Authority("ours"), Authority("another")
    secured = TokenEndpoint({"me": SECRET}, tmp_path / "jwks.json", identity=authority.issue("tokens"))
    with secured.running():
        trusting = properties(secured) | {"https.ca.pem": authority.pem}
        assert [Tokens("a").provider(trusting).token()] == secured.given
        for wrong in (properties(secured), properties(secured) | {"https.ca.pem": stranger.pem}):
            with pytest.raises(ClusterUnavailable, match="certificate verify failed"):
                Tokens("a").provider(wrong)
        assert len(secured.asked) == 1


def test_both_of_librdkafkas_names_for_the_client_serve(endpoint: TokenEndpoint) -> None:
    other = {
        "client.id": "",
        "client.secret": "",
        "client.credentials.client.id": "me",
        "client.credentials.client.secret": SECRET,
    }
    assert problems(properties(endpoint, **other)) == []
    assert Tokens("a").provider(properties(endpoint, **other)).token() in endpoint.given


def test_a_token_is_used_again_in_the_first_half_of_its_life(endpoint: TokenEndpoint) -> None:
    tokens = Tokens("a")
    assert len({tokens.provider(properties(endpoint)).token() for _ in range(3)}) == 1
    endpoint.life_seconds = 0.0
    tokens = Tokens("a")
    for _ in range(3):
        tokens.provider(properties(endpoint))
    assert len(endpoint.given) == 4


def test_a_new_secret_gets_a_new_token(endpoint: TokenEndpoint) -> None:
    tokens = Tokens("a")
    tokens.provider(properties(endpoint))
    endpoint.clients["me"] = "another"
    tokens.provider(properties(endpoint, **{"client.secret": "another"}))
    assert len(endpoint.given) == 2


def test_a_refused_secret_says_why_in_the_endpoints_code_and_nothing_else(endpoint: TokenEndpoint) -> None:
    with pytest.raises(NotAuthorized, match=r"HTTP status 401 invalid_client \(check") as caught:
        Tokens("a").provider(properties(endpoint, **{"client.secret": "a-wrong-Secret"}))
    assert "Secret" not in str(caught.value)


def test_an_endpoint_that_is_not_there_may_come_back(endpoint: TokenEndpoint) -> None:
    nowhere = properties(endpoint, **{"token.endpoint.url": "http://127.0.0.1:1/token"})
    with pytest.raises(ClusterUnavailable, match=r"asking http://127\.0\.0\.1:1/token for a token"):
        Tokens("a").provider(nowhere)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("method", "default", "must be one of oidc"),
        ("client.id", "", "client.id` is required"),
        ("token.endpoint.url", "idp/token", "must be the URL"),
        ("extensions", "a", "key=value"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_tried(
    endpoint: TokenEndpoint, key: str, value: str, said: str
) -> None:
    (problem,) = problems(properties(endpoint, **{key: value}))
    assert said in problem


def test_a_secret_is_sent_over_tls_or_to_this_machine_alone(endpoint: TokenEndpoint) -> None:
    far = properties(endpoint, **{"token.endpoint.url": "http://tokens.example/token"})
    (problem,) = problems(far)
    assert "must begin with https://" in problem
    for url in ("https://tokens.example/token", "http://localhost:8080/token", "http://[::1]/token"):
        assert problems(properties(endpoint, **{"token.endpoint.url": url})) == []

"""Names with a slash in paths."""

import asyncio
from urllib.parse import quote

import pytest

from strait_airflow.page.paths import WholeNames, decoded

pytestmark = pytest.mark.airflow


def path_of(raw: str) -> str:
    """What the application behind the middleware sees, of a path that a server has decoded."""
    seen = []

    async def application(scope, receive, send):
        seen.append(scope["path"])

    scope = {"type": "http", "path": "(decoded)", "raw_path": raw.encode()}
    asyncio.run(WholeNames(application)(scope, None, None))
    return seen[0]


@pytest.mark.parametrize("name", ["<b>lost & found</b>", "a/b/c", "ü/日本", "50 %/day"])
def test_a_name_with_a_slash_stays_one_part_and_comes_back(name):
    *rest, part, last = path_of(f"/strait/api/v1/links/{quote(name, safe='')}/partitions").split("/")
    assert (rest, last) == (["", "strait", "api", "v1", "links"], "partitions")
    assert decoded(part) == name


def test_other_paths_stay_as_the_server_has_decoded_them():
    assert path_of("/strait/api/v1/links/a%20b") == "(decoded)"

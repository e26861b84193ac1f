"""The HTTP API in a real Airflow: what it answers is what its document says; and the how-to about it, typed as it is
written."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from strait.config.home import project_root
from strait.control.plane import Control
from strait.kafka.admin import Admin
from support import pages
from support.fixtures.page import ADMIN, READ, Site
from support.fixtures.waiting import eventually
from support.kafka.topics import create
from support.links.copying import copying
from support.pages import SavedFile

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]

PAGE = "docs/how-to/use-the-api.md"
LINK, ASKING, FIRST, ADDED = "api-shop", "api-billing", "api.first", "api.added"
QUESTION_SETTLES_SECONDS = 5.0  # Airflow fails a task that is answered before its scheduler knows that it waits
QUERY = {"topic": "orders", "partition": "0", "group": "x", "id": "x", "hours": "1"}


@pytest.fixture(scope="module")
def document(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = site.get("api/v1/openapi.json", site.token()).json()
    return found


def test_the_document_is_the_published_one_and_needs_a_login(site, document):
    assert document == json.loads((project_root() / "docs/openapi.json").read_text(encoding="utf-8"))
    assert site.get("api/v1/openapi.json").status_code == 401


def strict(schema: Any) -> Any:
    """The same schema, by which an object has no further fields."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return {"additionalProperties": False, **closed} if isinstance(schema.get("properties"), dict) else closed


def test_each_answer_is_what_the_document_says(site, document):
    token, parts = site.token(), strict(document["components"])
    eventually(lambda: site.get(f"api/v1/links/{READ}", token).json()["state"] != "looking", what="the link is read")
    checked = []
    for path, methods in document["paths"].items():
        if "get" not in methods or "{at}" in path:
            continue
        asked = [one["name"] for one in methods["get"].get("parameters", ()) if one["name"] in QUERY]
        query = "&".join(f"{name}={QUERY[name]}" for name in asked)
        url = f"{path.removeprefix('/').replace('{link}', READ)}?{query}"
        eventually(lambda url=url: not site.get(url, token).json().get("looking"), what=f"{url} is read")
        found = site.get(url, token)
        answer = methods["get"]["responses"][str(found.status_code)]["content"]["application/json"]["schema"]
        problems = Draft202012Validator({**strict(answer), "components": parts}).iter_errors(found.json())
        assert [f"{url}: {one.json_path}: {one.message}" for one in problems] == []
        checked.append(found.status_code)
    assert len(checked) >= 15 and set(checked) == {200, 404}


@pytest.fixture(scope="module")
def links(site: Site) -> Iterator[None]:
    """Two further links, of which one asks before each change."""
    before = site.links_file.read_text()
    file = yaml.safe_load(before)
    ends = {"source": "here", "destination": "there", "spark": {"head_start": False}}
    naming = {"policy": "prefix", "prefix": "asked."}
    file["links"][LINK] = ends | {"topics": {"include": [FIRST]}}
    file["links"][ASKING] = ends | {"topics": {"include": [FIRST]}, "naming": naming, "approval": "required"}
    for topic in (FIRST, ADDED):
        create(site.clusters.source, topic, 2)
    site.links_file.write_text(yaml.safe_dump(file))
    dags = {f"strait_{LINK}", f"strait_{ASKING}_approval"}
    try:
        with closing(site.airflow.client()) as client:
            eventually(lambda: dags <= {dag["dag_id"] for dag in client.dags()}, what="DAGs", within_seconds=120)
            for dag in dags:
                client.unpause(dag)
        yield
    finally:
        site.links_file.write_text(before)
        site.airflows("DELETE", f"variables/strait_topics_{LINK}", site.token())


def blocks() -> dict[str, str]:
    """Heading -> the commands below it."""
    parts = re.split(r"^## (.+)$", (project_root() / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        head: re.findall(r"<!-- run -->\n```bash\n(.*?)```", text, re.DOTALL)
        for head, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {head: own(texts[0]) for head, texts in found.items() if texts}


def own(text: str) -> str:
    """With the test's own links and topics."""
    for written, ours in {"shop": LINK, "billing": ASKING, "payments": ADDED}.items():
        text = text.replace(written, ours)
    return text


def typed(site: Site, folder: Path, text: str) -> str:
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=os.environ
        | {
            "AIRFLOW_URL": site.airflow.url,
            "AIRFLOW_USER": ADMIN,
            "AIRFLOW_PASSWORD": site.password(),
            "no_proxy": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_how_to_does_what_it_says(site, links, tmp_path):
    assert shutil.which("jq"), "the how-to needs jq (Debian: apt-get install jq)"
    (saved,) = [step for step in pages.steps(PAGE) if isinstance(step, SavedFile)]
    (tmp_path / saved.name).write_text(saved.text)
    todo = blocks()

    def do(heading: str) -> str:
        return typed(site, tmp_path, todo.pop(heading))

    with Control.of(site.links_file, LINK) as control, copying(control, tmp_path):
        shown = do("Read states")
        assert f"{FIRST}-0 caught_up  0" in shown
        assert f"+ copies {ADDED}" in do("Add a topic and wait until it is replicated")
        shown = do("Pause and resume")
        assert f"pause {ADDED} by {ADMIN}" in shown
        assert '"reason": "maintenance"' in shown
        assert f"resume {ADDED} by {ADMIN}" in shown
        assert f"link {LINK}: dry run: " in do("Try a failover")
    there = Admin(site.clusters.destination.client_properties, "there")
    assert f"asked.{FIRST}" not in there.observe(lambda _: True).topics
    asked_at = eventually(lambda: question(site), what="a request for approval", within_seconds=240)
    eventually(lambda: time.monotonic() - asked_at > QUESTION_SETTLES_SECONDS, what="Airflow knows that it waits")
    shown = do("Approve changes")
    assert f"+ copies    {FIRST}" in shown
    assert shown.rstrip().endswith(ADMIN)
    eventually(lambda: f"asked.{FIRST}" in there.observe(lambda _: True).topics, what="the topic that was approved")
    assert todo == {}


def question(site: Site) -> float:
    """The time, if a request for approval waits."""
    path = f"dags/strait_{ASKING}_approval/dagRuns/~/hitlDetails?response_received=false&state=awaiting_input"
    return time.monotonic() if site.airflows("GET", path, site.token()).json()["hitl_details"] else 0.0

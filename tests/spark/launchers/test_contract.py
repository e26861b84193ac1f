"""What every launcher promises, whichever way it runs applications. See strait.launch.base.Launcher."""

from typing import Any

import pytest

from strait.config.pools import Pool
from strait.launch.base import EXIT_CONFIG, State
from strait.planning.assignment.pools import pool_spec
from support.fixtures.waiting import eventually
from support.links.links import Link, link_of
from support.spark.sites import Site

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_an_application_is_found_goes_on_after_kill_9_and_leaves_nothing_behind(site: Site, link: Link) -> None:
    launcher, name = link.launcher, link.name
    assert launcher.state(name) is None
    assert name not in {one.name for one in launcher.list()}

    link.publish(slots=1)
    link.produce(1000)
    first = link.submit()
    assert first.state is State.SUBMITTED
    assert launcher.submit(name, link.spec_path, link.spark).id == first.id
    link.until(lambda: link.copied() == 1000, "everything is copied")
    link.until_running()
    assert launcher.spec(first) == link.spec
    assert launcher.log_tail(link.application())
    assert [(one.name, one.id, one.state) for one in launcher.list()] == [(name, first.id, State.RUNNING)]

    other = site.launcher("lost" if site.found_without_directory else "applications")
    seen = other.state(name)
    assert seen is not None and (seen.id, seen.state) == (first.id, State.RUNNING)
    assert other.submit(name, link.spec_path, link.spark).id == first.id
    assert other.spec(seen) == link.spec

    site.kill_driver(name)
    link.produce(1000)
    if not site.restarts:
        ended = link.until_ended()
        assert ended.state is State.DEAD
        assert launcher.cause(ended)
        assert launcher.submit(name, link.spec_path, link.spark).id != first.id
    link.until(lambda: link.copied() == 2000, "copying goes on")
    link.until_running()
    assert len(launcher.history(name)) == (1 if site.restarts else 2)

    launcher.stop(name, grace_seconds=60)
    stopped = link.application()
    assert not stopped.state.alive
    assert launcher.history(name)[0].id == stopped.id
    eventually(lambda: not site.left_behind(name), what=lambda: "\n".join(site.left_behind(name)), within_seconds=60)
    link.compare()


def test_an_application_that_cannot_run_says_why_and_is_not_started_again(site: Site, link: Link) -> None:
    link.publish(slots=1)
    link.submit(strait="0.0.9")
    ended = link.until_ended()
    assert (ended.state, ended.exit_code) == (State.DEAD, EXIT_CONFIG)
    assert "was submitted by Strait 0.0.9, but this host has Strait" in link.launcher.cause(ended)
    assert [one.exit_code for one in link.launcher.history(link.name)] == [EXIT_CONFIG]
    link.launcher.stop(link.name)
    eventually(lambda: not site.left_behind(link.name), what=lambda: "\n".join(site.left_behind(link.name)))


@pytest.mark.timeout(1200)
def test_a_pool_takes_up_a_link_while_it_runs_and_goes_on_after_kill_9(site: Site, link: Link, clusters: Any) -> None:
    launcher, name = link.launcher, f"pool-{link.name}"[:50]
    other = link_of(f"{link.name[:45]}-2", clusters, site.folder, launcher, spark=site.spark)
    links = link, other
    for one in links:
        one.spec = one.spec.model_copy(update={"ledger_seconds": 10})

    def spec(*members: Link) -> Any:
        return pool_spec(
            name, Pool(slots=1), [one.spec for one in members], None, link.spec.checkpoint_dir,
            measured={}, runs=False, balance=False,
        )  # fmt: skip

    def until_copied(*those: Link, records: int) -> None:
        eventually(
            lambda: all(one.copied() == records for one in those),
            what=lambda: f"{records} of each: {[launcher.log_tail(one, 2000) for one in launcher.history(name)]}",
            within_seconds=180,
        )

    def until_running() -> None:
        eventually(
            lambda: (found := launcher.state(name)) is not None and found.state is State.RUNNING,
            what="it runs",
            within_seconds=120,
        )

    for one in links:
        one.publish(slots=1)
        one.produce(1000)
    alone = spec(link)
    alone.write(link.spec_path)
    first = launcher.submit(name, link.spec_path, link.spark)
    try:
        until_copied(link, records=1000)
        assert launcher.spec(first) == alone
        both = spec(*links)
        both.write(link.spec_path)
        if not launcher.update(first, both):
            launcher.stop(name)
            first = launcher.submit(name, link.spec_path, link.spark)
        until_copied(*links, records=1000)
        assert launcher.spec(first) == both

        until_running()
        site.kill_driver(name)
        for one in links:
            one.produce(1000)
        if not site.restarts:
            eventually(lambda: not launcher.state(name).state.alive, what="its end", within_seconds=120)  # type: ignore[union-attr]
            launcher.submit(name, link.spec_path, link.spark)
        until_copied(*links, records=2000)
        if site.spark.manager not in ("yarn", "kubernetes"):  # their files are not on this machine
            for one in links:
                eventually(
                    lambda one=one: has_whole_ledger(one),
                    what=lambda one=one: f"a row for each record of {one.name}: {one.ledger()}",
                    within_seconds=120,
                )
    finally:
        launcher.stop(name, grace_seconds=60)
    eventually(lambda: not site.left_behind(name), what=lambda: "\n".join(site.left_behind(name)), within_seconds=60)
    for one in links:
        one.compare()


def has_whole_ledger(link: Link) -> bool:
    try:
        link.assert_ledger_is_whole()
    except AssertionError:
        return False
    return True

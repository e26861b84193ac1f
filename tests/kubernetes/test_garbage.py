"""With Kubernetes' own garbage collector, which the other tests do without."""

from collections.abc import Iterator

import pytest

from strait.launch.base import State
from support.fixtures.waiting import eventually
from support.kubernetes.site import KubernetesSite
from support.links.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesSite]:
    """A cluster that no other module uses: theirs must not be tidied up by anybody."""
    site = KubernetesSite(tmp_path_factory.mktemp("collected"))
    try:
        site.start()
        site.plane.collect_garbage()
        yield site
    finally:
        site.stop()


def test_a_driver_that_somebody_deletes_takes_all_that_is_its_own_along(link: Link, site: KubernetesSite) -> None:
    site.node.paused = True
    assert link.submit().state is State.SUBMITTED
    owned = ("secret", "service", "network_policy")
    assert all(site.names(kind) for kind in owned)
    site.core.delete_namespaced_pod(link.name, "strait")
    eventually(lambda: not site.left_behind(link.name), what=lambda: str(site.left_behind(link.name)))
    assert link.launcher.state(link.name) is None

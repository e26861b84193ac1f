"""The part of a link's application that keeps consumer groups in sync, in this process."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from strait.config.app_spec import AppSpec
from strait.consumer_groups.continuous import ContinuousSync
from support.fixtures.background import beside
from support.links.engine_link import EngineLink


def application(link: EngineLink) -> AbstractContextManager[None]:
    """What the driver does beside copying."""
    return application_of(link.spec)


@contextmanager
def application_of(spec: AppSpec) -> Iterator[None]:
    """The same for any link."""
    with beside(ContinuousSync(spec, "an-application").run, within_seconds=30.0):
        yield

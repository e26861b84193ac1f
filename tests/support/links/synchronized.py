"""What the applications of a mesh's links do beside copying."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from strait.config.app_spec import AppSpec
from support.links.group_sync import application_of
from support.links.mesh import Mesh


@contextmanager
def synchronized(mesh: Mesh) -> Iterator[None]:
    """Consumer groups are kept in sync in all directions that were started, while their links are not stopped."""
    with ExitStack() as stack:
        for link in mesh.links:
            stack.enter_context(application_of(AppSpec.read(mesh.folder / f"{mesh.name(link)}.json")))
        yield

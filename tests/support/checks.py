"""One test for a rule that many things have to keep: it names all that do not, not only the first."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def each(
    things: Iterable[T], name: Callable[[T], object] = str
) -> Callable[[Callable[[T], object]], Callable[[], None]]:
    """Make a test of a check, which returns what is wrong with one thing: a list, a text, or nothing."""

    def test_of(check: Callable[[T], object]) -> Callable[[], None]:
        def test() -> None:
            looked_at = list(things)
            assert looked_at, "there is nothing to check"
            wrong = {str(name(thing)): found for thing in looked_at if (found := check(thing))}
            assert not wrong, "; ".join(f"{thing}: {found}" for thing, found in wrong.items())

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return test_of

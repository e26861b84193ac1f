"""A cluster of one broker without sockets: what tests that answer its requests themselves have in common."""

from strait.net.known_topics import Leader


class OneBroker:
    """The cluster, and the only channel to its broker, which serves every version of every request."""

    def leader(self, _topic: str, _partition: int) -> Leader:
        return Leader(1, 0)

    def version(self, _: int, versions: tuple[int, int]) -> int:
        return versions[1]

    def served(self, _: int) -> tuple[int, int]:
        return 0, -1

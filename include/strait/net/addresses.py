"""The addresses in `bootstrap.servers`. Pure."""

from strait.errors import ConfigError


def parse_addresses(cluster: str, servers: str) -> list[tuple[str, int]]:
    """Parse ``host:port,[v6]:port`` into (host, port) pairs. Raises ConfigError."""
    addresses = []
    for item in filter(None, (part.strip() for part in servers.split(","))):
        host, _, port = item.rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(f"cluster {cluster}", [f"`bootstrap.servers`: {item!r} is not host:port"])
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise ConfigError(f"cluster {cluster}", ["`bootstrap.servers` is empty"])
    return addresses

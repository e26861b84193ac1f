"""Web addresses of the REST APIs of a cluster's ResourceManagers, from its `yarn-site.xml`."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from strait.config.yarn_settings import Yarn
from strait.errors import SetupError

_FILE = "yarn-site.xml"
_REFERENCE = re.compile(r"\$\{([\w.\-]+)\}")
_MANAGER = "yarn.resourcemanager"


def conf_dir(settings: Yarn) -> Path:
    """Return the directory with Hadoop's configuration. Raises SetupError."""
    named = settings.hadoop_conf_dir or os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    if not named:
        raise SetupError(
            "YARN: looking for Hadoop's configuration: HADOOP_CONF_DIR is not set",
            hint="set `spark.yarn.hadoop_conf_dir` to a directory with core-site.xml and yarn-site.xml",
        )
    return Path(named)


def web_addresses(settings: Yarn) -> list[str]:
    """Return the ResourceManagers' web addresses: those of the settings, else of `yarn-site.xml`.

    Raises:
        SetupError: no Hadoop configuration is set, or it cannot be read.
    """
    if settings.resource_manager:
        return [address.rstrip("/") for address in settings.resource_manager]
    file = conf_dir(settings) / _FILE
    try:
        site = properties(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ElementTree.ParseError) as error:
        why = error.strerror if isinstance(error, OSError) else f"is not XML: {error}"
        raise SetupError(f"YARN: reading {file}: {why}", hint="set `spark.yarn.hadoop_conf_dir`") from error
    return addresses(site)


def properties(text: str) -> Mapping[str, str]:
    """Return the properties of a Hadoop configuration file; references to others of them are resolved."""
    rows = ElementTree.fromstring(text).iter("property")  # noqa: S314  as trusted as the cluster that it names
    found = {row.findtext("name", "").strip(): row.findtext("value", "").strip() for row in rows}
    return {key: _REFERENCE.sub(lambda match: found.get(match[1], match[0]), value) for key, value in found.items()}


def addresses(site: Mapping[str, str]) -> list[str]:
    """Return the address of each ResourceManager."""
    secure = site.get("yarn.http.policy") == "HTTPS_ONLY"
    scheme, key, port = ("https", "webapp.https.address", 8090) if secure else ("http", "webapp.address", 8088)
    ids = site.get(f"{_MANAGER}.ha.rm-ids", "") if site.get(f"{_MANAGER}.ha.enabled") == "true" else ""
    suffixes = [f".{one.strip()}" for one in ids.split(",") if one.strip()] or [""]
    found = []
    for suffix in suffixes:
        host = site.get(f"{_MANAGER}.hostname{suffix}", "127.0.0.1" if not suffix else "")
        address = site.get(f"{_MANAGER}.{key}{suffix}", f"{host}:{port}" if host else "")
        if address:
            found.append(f"{scheme}://{address}")
    return found

"""Names of applications in Kubernetes, and the labels by which they are found. Pure."""

import hashlib
import re

MANAGED_BY = "strait-managed-by"
APPLICATION = "strait-application"
LINK = "strait-link"
GROUP = "strait-group"
SUBMISSION = "strait-submission"
"""Keys of labels. Secrets have all of them, config maps the first two. APPLICATION is also an annotation, with the
unchanged name."""

MANAGER = "strait"
ROLE = "spark-role"  # Spark's own: driver or executor

_LONGEST = 40  # Spark adds up to 20 characters, and a label has 63 at most
_PLAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def resource_name(name: str) -> str:
    """Return a name that Kubernetes allows, the same for the same name and different for any other. The driver pod of
    an application has it, which prevents a second driver."""
    if len(name) <= _LONGEST and _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: _LONGEST - len(digest) - 1].strip("-")
    return "-".join(filter(None, (plain, digest)))


def labels(name: str, link: str, group: str, submission: str) -> dict[str, str]:
    """Return the labels of everything that belongs to one submission."""
    return {
        MANAGED_BY: MANAGER,
        APPLICATION: resource_name(name),
        LINK: resource_name(link),
        GROUP: resource_name(group),
        SUBMISSION: submission,
    }


def selector(name: str | None = None, **more: str) -> str:
    """Return a label selector for everything of Strait, or of one application."""
    wanted = {MANAGED_BY: MANAGER} | ({APPLICATION: resource_name(name)} if name else {})
    return ",".join(f"{key}={value}" for key, value in (wanted | more).items())

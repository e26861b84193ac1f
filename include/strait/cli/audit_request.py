"""The command line of `strait audit`: the request, and checks that would otherwise fail only after the audit."""

import os
from pathlib import Path
from typing import Any

from strait.audit.certificate import signed
from strait.cli.audit_output import read_bytes, read_json
from strait.cli.options import one_link, rate, time_ms
from strait.config.audit import AuditJob, AuditRequest
from strait.config.links import LinksFile, load, load_link
from strait.config.outline import link_names
from strait.control.audit import AuditedClusters, Ended, clusters_of, recorded_clusters, recorded_job, require_clusters
from strait.errors import ConfigError


def require_outputs(out: Path | None, key: Path | None) -> None:
    """Raise ConfigError if the certificate could be neither written nor signed at the end."""
    if key is not None:
        signed({}, read_bytes(key))
    if out is not None and (out.is_dir() or not out.parent.is_dir() or not os.access(out.parent, os.W_OK)):
        why = "is a directory" if out.is_dir() else "cannot be written: its directory is missing or not writable"
        raise ConfigError("command line", [f"--out {out} {why}"])


def ended(home: Path, audit_id: str) -> Ended | None:
    """Return an audit that is over, from its certificate on this host; None: there is none."""
    directory = home / "audits" / audit_id
    if not (directory / "certificate.json").is_file():
        return None
    return Ended.of(audit_id, read_json(directory / "certificate.json"), str(directory))


def recorded(home: Path, audit_id: str) -> tuple[AuditedClusters, AuditJob]:
    """Return the clusters and the job of an audit that can be continued. Raises ConfigError."""
    clusters, job = recorded_clusters(home, audit_id), recorded_job(home, audit_id)
    if clusters is None or job is None:
        certificate = home / "audits" / audit_id / "certificate.json"
        if certificate.is_file():
            hint = f"`strait audit --resume {audit_id} --out FILE` writes it to a file, signed with `--key`"
            raise ConfigError("audit", [f"{audit_id} is over; its certificate is {certificate}"], hint=hint)
        raise ConfigError("audit", [f"this host knows no audit {audit_id!r}"], hint=f"see {home / 'audits'}")
    return clusters, job


def of_link(config: Path, link: str | None, words: list[str]) -> tuple[AuditedClusters, list[str]]:
    topics = list(words)
    if link is None and topics and topics[0] in link_names(config):
        link = topics.pop(0)
    if link is None:
        link, _ = one_link(config, None, *([] if len(link_names(config)) == 1 else words[:1]))
    return clusters_of(load_link(config, link), link), topics


def of_clusters(
    relation: str, source: str, destination: str, topics: list[str], link: str | None
) -> tuple[AuditedClusters, list[str]]:
    problems = []
    if relation not in ("offset", "order"):
        problems.append(f"--relation {relation}: must be map, offset or order")
    if not source or not destination:
        problems.append("name both clusters with --source and --destination")
    if not topics:
        problems.append("name the source topics")
    if link:
        problems.append("--link needs --relation map")
    if problems:
        raise ConfigError("command line", problems)
    return AuditedClusters("", source, destination), topics


def file_of(config: Path, clusters: AuditedClusters) -> LinksFile:
    if clusters.link:
        return load_link(config, clusters.link)
    file = load(config)
    require_clusters(file, clusters.source, clusters.destination)
    return file


def request_of(
    relation: Any,
    topics: list[str],
    strong: bool,
    replicas: bool,
    sample: float,
    seed: str,
    since: str | None,
    until: str | None,
    budget: str,
) -> AuditRequest:
    since_ms, until_ms = time_ms(since), time_ms(until)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise ConfigError("command line", [f"--until {until} is not after --since {since}"])
    return AuditRequest(
        relation=relation,
        topics=tuple(topics),
        strong=strong,
        replicas=replicas,
        sample=sample,
        seed=seed,
        since_ms=since_ms,
        until_ms=until_ms,
        bytes_per_second=rate(budget),
    )

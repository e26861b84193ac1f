"""The certificate of an audit: the compared ranges, the method, the differences, and the limits. Pure.

Two audits of the same ranges give the same ``body``. The times of the audit are outside of it. ``sha256`` is the hash of
the body; ``times_sha256`` and the signature cover this hash and the times.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from strait import __version__
from strait.audit.findings import as_counts, sum_of, unexplained, verdict_of
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.task_result import ChunkResult
from strait.config.audit import AuditRequest
from strait.errors import ConfigError

VERSION = 1
_BY_BATCH = "CRC-32C of the records' bytes, equal on both sides and to both headers"
_BY_STRONG = ", and SHA-256 of them"
_BY_TRANSFORM = "topics with a transformation: compared with its result, evaluated again over the source's records"
_BY_LEDGER = "CRC-32C of each batch, equal to its header's, and the chain of these of a row equal to the ledger's"
MOST_DIFFERENCES = 100
"""Differences that the certificate itself lists; the files with the details have more."""
_SUMS = ("records", "by_batch", "by_record", "source_bytes", "copy_bytes", "source_batches", "copy_batches")
_METHODS = {
    "map": "records paired by the link's offset map and the sequence numbers in its batches",
    "offset": "records paired by equal offsets",
    "order": "records paired by their order",
    "ledger": "the destination's batches checked by the digests that the replication ledger has of the sent ones",
}


_NOT_COMPARED = (
    ("deleted", "records were deleted on one side before the audit"),
    ("unknown", "records have source offsets that the offset map does not determine"),
    ("tail", "source offsets follow the last record that the destination has"),
    (
        "before",
        "source offsets precede the first record of a transformed topic that was copied: its rule left them out, or the link started there",
    ),
)
_NOT_IN_LEDGER = (
    ("deleted", "destination offsets are in rows of the ledger of which retention has deleted a part"),
    ("unknown", "records have no digest in the ledger: acknowledgements were lost, or a slot was killed"),
    ("tail", "destination offsets follow the last row of the ledger"),
)


def certificate(
    plan: AuditPlan, results: Iterable[ChunkResult], *, began_at_ms: int, ended_at_ms: int, chunks: Mapping[str, int]
) -> dict[str, Any]:
    """Return the certificate.

    Args:
        results: of all chunks that were compared or failed.
        chunks: partition, by name -> number of its chunks, of which a sample may have been compared.
    """
    by_partition: dict[str, list[ChunkResult]] = {}
    for one in sorted(results, key=attrgetter("key")):
        by_partition.setdefault(f"{one.topic}-{one.partition}", []).append(one)
    partitions = [
        _partition(one, by_partition.get(one.name, []), chunks.get(one.name, 0), plan.request)
        for one in plan.partitions
    ]
    everything = [one for found in by_partition.values() for one in found]
    counts = sum_of([*map(_counts, everything), *map(_skipped, plan.partitions)])
    complete = all(one["verdict"] not in ("incomplete", "not compared") for one in partitions)
    complete = complete and not _has_empty_window(plan.request, partitions)
    body = {
        "certificate": VERSION,
        "verdict": verdict_of(counts, complete=complete),
        "link": plan.link or None,
        "source": {"name": plan.source, "cluster_id": plan.source_cluster},
        "destination": {"name": plan.destination, "cluster_id": plan.destination_cluster},
        "method": _method(plan),
        **{name: sum(one[name] for one in partitions) for name in _SUMS},
        "unexplained": unexplained(counts),
        "differences_by_kind": as_counts(counts),
        "topics": [one.model_dump() for one in plan.topics],
        "partitions": partitions,
        "differences": _differences(everything),
        "not_covered": _not_covered(plan, partitions),
        "strait": __version__,
    }
    times: dict[str, Any] = {
        "id": plan.id,
        "planned_at_ms": plan.planned_at_ms,
        "began_at_ms": began_at_ms,
        "ended_at_ms": ended_at_ms,
        "cpu_seconds": round(sum(one.cpu_seconds for one in everything), 3),
    }
    found = {"body": body, "times": times, "sha256": hash_of(body)}
    return found | {"times_sha256": hashlib.sha256(_signed_part(found)).hexdigest()}


def hash_of(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a body in its canonical form: JSON with sorted keys, without spaces, in ASCII."""
    return hashlib.sha256(_canonical(body)).hexdigest()


def signed(whole: Mapping[str, Any], key_pem: bytes) -> dict[str, Any]:
    """Return the certificate with a signature by an Ed25519 private key in PEM. Raises ConfigError."""
    try:
        key = load_pem_private_key(key_pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError("audit key", [f"not a private key in PEM without a passphrase: {error}"]) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            "audit key", ["not an Ed25519 key"], hint="create one with `openssl genpkey -algorithm ed25519`"
        )
    signature = base64.b64encode(key.sign(_signed_part(whole))).decode()
    return {**whole, "signature": {"algorithm": "ed25519", "value": signature}}


def problems(whole: object, public_pem: bytes | None = None) -> list[str]:
    """Return the problems of a certificate: its hash, its signature, or sums that do not add up."""
    if (
        not isinstance(whole, dict)
        or not isinstance(whole.get("body"), dict)
        or not isinstance(whole.get("times"), dict)
    ):
        return ["not a certificate of `strait audit`"]
    body = whole["body"]
    if body.get("certificate") != VERSION:
        return [f"certificate version {body.get('certificate')!r}; this version of Strait reads {VERSION}"]
    found = []
    if hash_of(body) != whole.get("sha256"):
        found.append("the body does not match its hash: it was changed")
    else:
        found += _content_problems(body)
    if hashlib.sha256(_signed_part(whole)).hexdigest() != whole.get("times_sha256"):
        found.append("the times do not match their hash: they were changed")
    if public_pem is not None:
        found += _signature_problems(whole, public_pem)
    return found


def _content_problems(body: Mapping[str, Any]) -> list[str]:
    partitions = body.get("partitions")
    counts = [body, *partitions] if isinstance(partitions, list) else []
    if "verdict" not in body or not counts or not all(map(_has_sums, counts)):
        return ["not a certificate of `strait audit`"]
    sums = {name: sum(one[name] for one in counts[1:]) for name in _SUMS}
    return [f"{name} is not the sum of the partitions' {name}" for name in _SUMS if sums[name] != body[name]]


def _has_sums(part: object) -> bool:
    return isinstance(part, dict) and all(isinstance(part.get(name), int) for name in _SUMS)


def _signature_problems(whole: Mapping[str, Any], public_pem: bytes) -> list[str]:
    try:
        key = load_pem_public_key(public_pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError("audit key", [f"not a public key in PEM: {error}"]) from None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError("audit key", ["not an Ed25519 key"])
    signature = whole.get("signature")
    if not isinstance(signature, dict):
        return ["it has no signature"]
    try:
        key.verify(base64.b64decode(str(signature.get("value")), validate=True), _signed_part(whole))
    except (InvalidSignature, binascii.Error):
        return ["the signature is not of this key and this content"]
    return []


def _signed_part(whole: Mapping[str, Any]) -> bytes:
    return _canonical({"sha256": whole.get("sha256"), "times": whole.get("times")})


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _method(plan: AuditPlan) -> dict[str, Any]:
    request = plan.request
    return {
        "relation": request.relation,
        "pairing": _METHODS[request.relation],
        "by_batch": _BY_LEDGER if request.relation == "ledger" else _BY_BATCH + _BY_STRONG * request.strong,
        "by_record": "SHA-256" if request.strong else "64-bit digest",
        "transformed": _BY_TRANSFORM if any(one.transform for one in plan.topics) else None,
        "strong": request.strong,
        "replicas": "all" if request.replicas else "leaders",
        "sample": request.sample,
        "seed": request.seed if request.sample < 1 else None,
        "since_ms": request.since_ms,
        "until_ms": request.until_ms,
    }


def _partition(
    one: AuditedPartition, results: Sequence[ChunkResult], chunks: int, request: AuditRequest
) -> dict[str, Any]:
    counts = sum_of([*map(_counts, results), _skipped(one)])
    problem = one.problem or "; ".join(sorted({text for it in results for text in (it.error, it.unread) if text}))
    tail = one.tail + sum(result.tail for result in results)
    nothing = not counts and not any(result.records for result in results)
    if nothing and not _is_windowed(request) and (one.deleted or one.before or tail):
        problem = problem or "none of its records could be compared"
    complete = not problem and not one.unknown
    verdict = verdict_of(counts, complete=complete) if results or not one.problem else "not compared"
    return {
        "topic": one.topic,
        "partition": one.partition,
        "copy_topic": one.copy_topic,
        "verdict": verdict,
        "first": one.first,
        "end": one.end,
        "source_offsets": [one.source_start, one.source_end],
        "copy_offsets": [one.copy_start, one.copy_end],
        **{name: sum(getattr(result, name) for result in results) for name in _SUMS},
        "replica_bytes": sum(result.replica_bytes for result in results),
        "source_digest": _chained(result.source_digest for result in results),
        "copy_digest": _chained(result.copy_digest for result in results),
        "chunks": chunks,
        "chunks_compared": sum(not result.error for result in results),
        "differences_by_kind": as_counts(counts),
        "moved_in": max(0, one.moved_in.source_end - one.source_start) if one.moved_in else 0,
        "deleted": one.deleted,
        "unknown": one.unknown,
        "before": one.before,
        "tail": tail,
        "newest_ms": max([-1, *(result.newest_ms for result in results)]),
        "problem": problem,
    }


def _is_windowed(request: AuditRequest) -> bool:
    return request.since_ms is not None or request.until_ms is not None


def _has_empty_window(request: AuditRequest, partitions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether no record is of the requested time."""
    return _is_windowed(request) and not any(one["records"] or one["differences_by_kind"] for one in partitions)


def _counts(one: ChunkResult) -> dict[tuple[Any, str], int]:
    return {(kind, explained): records for kind, explained, records in one.counts}


def _skipped(one: AuditedPartition) -> dict[tuple[Any, str], int]:
    return {("skipped", "moved in"): one.skipped} if one.skipped else {}


def _chained(digests: Iterable[str]) -> str:
    chain = hashlib.sha256()
    for one in digests:
        chain.update(one.encode())
    return chain.hexdigest()


def _differences(results: Iterable[ChunkResult]) -> list[dict[str, Any]]:
    found = [
        {"topic": one.topic, "partition": one.partition, **difference._asdict()}
        for one in results
        for difference in sorted(one.differences, key=lambda it: bool(it.explained))
    ]
    found.sort(key=lambda it: bool(it["explained"]))
    return found[:MOST_DIFFERENCES]


def _not_covered(plan: AuditPlan, partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [f"{one['topic']}-{one['partition']}: {one['problem']}" for one in partitions if one["problem"]]
    for name, text in _NOT_IN_LEDGER if plan.request.relation == "ledger" else _NOT_COMPARED:
        count = sum(one[name] for one in partitions)
        if count:
            found.append(f"{count} {text}")
    if _has_empty_window(plan.request, partitions):
        found.append("no record is of the requested time")
    if plan.request.sample < 1:
        compared, chunks = (sum(one[name] for one in partitions) for name in ("chunks_compared", "chunks"))
        found.append(f"{chunks - compared} of {chunks} chunks are not in the sample")
    others = "consumer groups, ACLs and topic configurations"
    found.append(others if plan.request.replicas else f"replicas other than the leaders, {others}")
    return found

"""Metrics of the results of failovers, rehearsals and audits. Pure."""

from strait.exporter.families import Family, audited, of_failovers, of_link, score, seconds

_EVERY = ("planned", "unplanned", "rehearsal")

PROOFS: tuple[Family, ...] = (
    Family(
        "strait_readiness_ratio",
        "gauge",
        "Of the steps of the last rehearsal of a failover: the part that holds.",
        (),
        of_link(score),
    ),
    Family(
        "strait_failover_timestamp_seconds",
        "gauge",
        "When the last failover or rehearsal of this kind ended.",
        ("kind",),
        lambda seen: ((labels, ended / 1000) for labels, ended in of_failovers("ended_at_ms", *_EVERY)(seen)),
    ),
    Family(
        "strait_rpo_records",
        "gauge",
        "Records known to be missing after the last failover of this kind.",
        ("kind",),
        of_failovers("rpo_records", *_EVERY),
    ),
    Family(
        "strait_rpo_seconds",
        "gauge",
        "Age of the newest record that the destination had, in the last failover of this kind.",
        ("kind",),
        of_failovers("rpo_seconds", *_EVERY),
    ),
    Family(
        "strait_rto_seconds",
        "gauge",
        "Duration of the last failover of this kind, from the first step to the last.",
        ("kind",),
        of_failovers("rto_seconds", *_EVERY),
    ),
    Family(
        "strait_audit_verified_until_timestamp_seconds",
        "gauge",
        "Time up to which the last audits, with the source or by the ledger, have compared all records of the topic without finding "
        "a difference.",
        ("topic",),
        audited(lambda topic: seconds(topic.until_ms)),
    ),
    Family(
        "strait_audit_differences",
        "gauge",
        "Records that differed without an explanation on record in the topic's last audit that found some, until one of all "
        "records finds none.",
        ("topic",),
        audited(lambda topic: topic.differences),
    ),
)

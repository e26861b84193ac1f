"""`strait audit`: prove that destination topics equal their sources, and certify it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from strait.audit.certificate import problems, signed
from strait.audit.publishing import audits
from strait.cli.audit_export import export
from strait.cli.audit_output import Shown, read_bytes, read_json, show_certificate, summary, write_certificate
from strait.cli.audit_repair import repair_
from strait.cli.audit_request import ended as ended_before
from strait.cli.audit_request import file_of, of_clusters, of_link, recorded, request_of, require_outputs
from strait.cli.completing import link_or_topics_that_start_with
from strait.cli.examples import examples
from strait.cli.long_work import stop_signals
from strait.cli.options import (
    DEFAULT_FILE,
    ChosenLink,
    Command,
    CommandGroup,
    ConfigOption,
    LinkOption,
    Output,
    OutputOption,
    link_command,
)
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.audit import AuditJob, AuditRequest
from strait.config.home import home
from strait.config.links import LinksFile, Spark
from strait.control.audit import (
    AuditedClusters,
    AuditRun,
    Ended,
    directory_of,
    ledger_of,
    new_id,
    recorded_job,
)
from strait.errors import ConfigError
from strait.text import utc

_EXIT_DIFFERENT = 3
_EXIT_INCOMPLETE = 4
_EXITS = {"equal": 0, "explained": 0, "different": _EXIT_DIFFERENT, "incomplete": _EXIT_INCOMPLETE}


class _RunByDefault(CommandGroup):
    """Runs `strait audit run` if `strait audit` is given no subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_RunByDefault, help="Compare the contents of topics, and certify the result.")

app.command("export", cls=Command, epilog=examples("audit export"))(export)
app.command("repair", cls=Command, epilog=examples("audit repair"))(repair_)

_Certificate = Annotated[Path, typer.Argument(metavar="FILE", help="Certificate, a JSON file.", show_default=False)]


@app.command(cls=Command, epilog=examples("audit run"))
def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LINK] [TOPIC]...",
            help="Name of the link, which may be omitted if the file has one, and source topics. Default: all of the "
            "link's topics.",
            show_default=False,
            autocompletion=link_or_topics_that_start_with,
        ),
    ] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    relation: Annotated[
        str,
        typer.Option(
            "--relation",
            metavar="RELATION",
            help="How records are paired: `map`: by the link's offset map; `offset`: by equal offsets (Cluster Linking, "
            "KIP-1279); `order`: by their order (MirrorMaker 2, Replicator).",
        ),
    ] = "map",
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger",
            help="Check the destination alone, by the digests in the replication ledger: also after the source has deleted "
            "the records, or is lost.",
        ),
    ] = False,
    source: Annotated[
        str, typer.Option("--source", help="Source cluster, for `offset` and `order`.", show_default=False)
    ] = "",
    destination: Annotated[
        str, typer.Option("--destination", help="Destination cluster, for `offset` and `order`.", show_default=False)
    ] = "",
    copy_name: Annotated[
        str,
        typer.Option(
            "--copy-name",
            metavar="NAME",
            help="Destination topic's name, for `offset` and `order`; `{topic}` is the source's.",
        ),
    ] = "{topic}",
    strong: Annotated[
        bool,
        typer.Option("--strong", help="Compare by SHA-256, too: proves equality against intent, not only accidents."),
    ] = False,
    replicas: Annotated[bool, typer.Option("--replicas", help="Check the followers of each partition, too.")] = False,
    sample: Annotated[
        float, typer.Option("--sample", help="Share of the chunks to compare, such as 0.05.", min=0.0001, max=1.0)
    ] = 1.0,
    seed: Annotated[str, typer.Option("--seed", help="Determines which chunks are in the sample.")] = "1",
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only records from this time on, such as 2026-11-26T08:00Z.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only records before this time.", show_default=False)
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="Limit for reading each cluster, such as 50MB/s.", show_default=False)
    ] = "",
    slots: Annotated[
        int, typer.Option("--slots", help="Number of chunks to compare at the same time, each by one core.", min=1)
    ] = 1,
    resume: Annotated[
        str, typer.Option("--resume", metavar="ID", help="Continue this interrupted audit.", show_default=False)
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the certificate to this file, too.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Sign the certificate with this Ed25519 private key, in PEM.", show_default=False),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare source and destination topics record by record, in Spark.

    Batches that were passed through are compared without decompressing them. Prints a certificate's summary; exits with
    3 if something differs without an explanation on record, and with 4 if not everything could be compared.
    """
    require_outputs(out, key)
    how = strong, replicas, sample, seed, since, until, budget
    if resume:
        given = words or link or ledger or source or destination or (relation, copy_name) != ("map", "{topic}")
        if given or request_of("map", [], *how) != AuditRequest():
            allowed = "--slots, --out, --key and -o"
            raise ConfigError("command line", [f"--resume continues what was requested: besides it, only {allowed}"])
        if out is not None and (over := ended_before(home(), resume)) is not None:
            _finish(over, out, key, output)
            return
        clusters, job = recorded(home(), resume)
        file = file_of(config, clusters)
        ended = _run(file, clusters, job.request, dict(job.copies), resume, slots, output)
    else:
        copies: dict[str, str] = {}
        if ledger:
            if relation != "map":
                raise ConfigError("command line", ["--ledger needs a link"])
            relation = "ledger"
        if relation in ("map", "ledger"):
            if source or destination:
                raise ConfigError("command line", ["--source and --destination need --relation offset or order"])
            clusters, topics = of_link(config, link, words or [])
        else:
            clusters, topics = of_clusters(relation, source, destination, words or [], link)
            copies = {topic: copy_name.replace("{topic}", topic) for topic in topics}
        request = request_of(relation, topics, *how)
        file = file_of(config, clusters)
        ended = _run(file, clusters, request, copies, "", slots, output)
    if ended is None:
        raise typer.Exit(1)
    _finish(ended, out, key, output)


@app.command(cls=Command, epilog=examples("audit verify"))
def verify(
    certificate: _Certificate,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="Ed25519 public key of the signer, in PEM. Requires a signature.", show_default=False
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check that a certificate is unchanged.

    Verifies its hash, its sums and, given a key, its signature. Reads no cluster. Exits with 1 if something is wrong.
    """
    whole = read_json(certificate)
    found = problems(whole, None if key is None else read_bytes(key))
    if output.structured:
        output.write({"file": str(certificate), "valid": not found, "problems": found})
    elif found:
        for line in found:
            echo(f"{certificate}: {line}", err=True)
    else:
        signed = ", and its signature is valid" if key is not None else ""
        echo(f"{certificate}: unchanged{signed}: {summary(whole)}")
    if found:
        raise typer.Exit(1)


@app.command("list", cls=Command, epilog=examples("audit list"))
@link_command
def list_(
    link: ChosenLink,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the audits of a link and their verdicts."""
    found = audits(link.load().destination, link.name)
    if output.structured:
        output.write([one.model_dump() for one in found])
        return
    if not found:
        echo(f"link {link.name}: no audits recorded")
        return

    rows = (
        [
            one.id,
            utc(one.ended_at_ms),
            one.verdict,
            f"{one.sample:g}",
            f"{one.records:,}",
            str(one.topics),
            one.sha256,
        ]
        for one in found
    )
    plain_table(["audit", "ended (UTC)", "verdict", ">sample", ">records", ">topics", "sha256"], rows)


def _run(
    file: LinksFile,
    clusters: AuditedClusters,
    request: AuditRequest,
    copies: dict[str, str],
    resume: str,
    slots: int,
    output: Output,
) -> Ended | None:
    spark = file.links[clusters.link].spark if clusters.link else Spark()
    job = AuditJob(
        id=resume or new_id(),
        directory=directory_of(spark, home()),
        ledger=ledger_of(spark, home()),
        request=request,
        copies=copies,
    )
    shown = Shown(output)
    with stop_signals() as stopped:
        try:
            audit = AuditRun(file, clusters, spark, job, home(), slots=slots, show=shown.show)
            ended = audit.run(stopped.is_set)
        finally:
            shown.clear()
    if ended is None:
        known = recorded_job(home(), job.id) is not None
        what = f"`strait audit --resume {job.id}` continues it" if known else "nothing was compared yet"
        echo(f"audit {job.id} is interrupted; {what}", err=True)
    return ended


def _finish(ended: Ended, out: Path | None, key: Path | None, output: Output) -> None:
    whole = ended.certificate
    if whole is None:
        verdict = f"verdict {ended.verdict}" if ended.verdict else "its verdict is not known on this host"
        left = "; it is neither signed nor copied from there" if out is not None or key is not None else ""
        echo(f"audit {ended.id}: {verdict}; its certificate is {ended.directory}/certificate.json{left}", err=True)
        _exit(ended.verdict)
        return
    if key is not None:
        whole = signed(whole, read_bytes(key))
    if output.structured:
        output.write(dict(whole))
    else:
        show_certificate(ended.directory, whole)
    if out is not None:
        write_certificate(out, whole, ended.directory)
    _exit(ended.verdict)


def _exit(verdict: str) -> None:
    """Exit with the code of a verdict, unless that is 0."""
    code = _EXITS.get(verdict, _EXIT_INCOMPLETE)
    if code:
        raise typer.Exit(code)

"""Examples for the end of each command's help page. A test checks that every one is a valid command line."""

import inspect

_EXAMPLES = {
    "pools adopt": """
        strait pools adopt --dry-run                # which links would share an application
        strait pools adopt -f /etc/strait/links.yaml""",
    "run": """
        strait run                                  # the only link of ./links.yaml
        strait run a-to-b -f /etc/strait/links.yaml --interval 10s""",
    "validate": """
        strait validate -f links.yaml
        strait validate --connect""",
    "doctor": """
        strait doctor -f links.yaml
        strait doctor -o json                       # exit code 1 if something fails""",
    "plan": """
        strait plan a-to-b
        strait plan a-to-b --out plan.json          # then, after a review: strait apply plan.json
        strait plan a-to-b --preview customers      # ten records before and after its `transform`
        strait plan a-to-b --detailed-exitcode      # in CI: 2 if anything would change""",
    "apply": """
        strait apply a-to-b
        strait apply plan.json                      # exactly what was reviewed""",
    "settings": """
        strait settings a-to-b                      # as the plan in force has them, and where from
        strait settings a-to-b -o json""",
    "status": """
        strait status                               # every link of ./links.yaml
        strait status a-to-b                        # its topics, problems first
        strait status a-to-b orders                 # each partition of one topic
        strait status a-to-b --check -o json        # for a probe: exit code 1 if something is wrong
        strait status a-to-b --watch""",
    "top": """
        strait top                                  # every link, partitions with the most lag first
        strait top a-to-b --by rate -n 40
        strait top --once -o json                   # for a script""",
    "version": """
        strait version
        strait version -o json                      # with the directories for Airflow's configuration""",
    "wait": """
        strait wait a-to-b --for caught-up --timeout 10m
        strait wait a-to-b --to 2026-11-26T14:00Z --topic orders
        strait wait a-to-b --for stopped            # after strait stop a-to-b""",
    "exporter": """
        strait exporter                             # every link, on 127.0.0.1:9721
        strait exporter --address 0.0.0.0 --token-file /etc/strait/metrics-token
        strait exporter a-to-b --by-partition --most 2000""",
    "explain": """
        strait explain source_truncated""",
    "resolve": """
        strait resolve a-to-b orders --continue --reason "deleted by mistake"
        strait resolve a-to-b orders --restart
        strait apply a-to-b                         # follow the decision now, without the monitor DAG""",
    "stop": """
        strait stop a-to-b""",
    "start": """
        strait start a-to-b""",
    "pause": """
        strait pause a-to-b --reason "destination is being upgraded"
        strait pause a-to-b orders
        strait pause a-to-b orders-3""",
    "resume": """
        strait resume a-to-b                        # what was paused as a whole
        strait resume a-to-b orders-3""",
    "applications": """
        strait applications a-to-b                  # with the cause of the last end
        strait applications a-to-b -o wide          # each of the last submissions""",
    "logs": """
        strait logs a-to-b --follow
        strait logs a-to-b --group default --lines 200
        strait logs a-to-b --standby""",
    "losses": """
        strait losses a-to-b
        strait losses a-to-b orders -o json""",
    "quarantine list": """
        strait quarantine list a-to-b --topic orders""",
    "quarantine show": """
        strait quarantine show a-to-b --topic orders --partition 3 --offset 1042 --value""",
    "quarantine replay": """
        strait quarantine replay a-to-b --topic orders --dry-run
        strait quarantine replay a-to-b --topic orders --to orders.refused""",
    "quarantine drop": """
        strait quarantine drop a-to-b --topic orders --partition 3""",
    "groups": """
        strait groups a-to-b                        # every group with offsets in its topics
        strait groups a-to-b billing                # each partition of one group
        strait groups a-to-b --sync                 # commit the translated offsets on the destination
        strait groups a-to-b billing --check        # for a script: exit code 1 if it would not continue where it is""",
    "failover": """
        strait failover a-to-b --dry-run            # what each step would find now
        strait failover a-to-b --rehearse           # with a score of how ready the link is
        strait failover a-to-b --fence User:orders --reason "move to the new region"
        strait failover a-to-b --unplanned          # the source is lost
        strait failover a-to-b --history -o json    # the reports""",
    "tail list": """
        strait tail list a-to-b                     # how much of each partition
        strait tail list a-to-b --topic orders --records
        strait tail list c-to-b --from c-to-a       # c is lost: what a got of it, and b did not""",
    "tail copy": """
        strait tail copy c-to-b --from c-to-a --reason "c is lost"
        strait tail copy c-to-b --from c-to-a --topic orders --reason "c is lost" --dry-run""",
    "tail export": """
        strait tail export a-to-b --out tail.jsonl
        strait tail export a-to-b --topic orders --to orders.tail""",
    "tail drop": """
        strait tail drop a-to-b --topic orders --reason "entered again by hand"
        strait tail drop a-to-b --reason "test data" --dry-run""",
    "failback": """
        strait failback a-to-b --dry-run            # by the link in the opposite direction
        strait failback a-to-b --reason "region a is back\"""",
    "offsets translate": """
        strait offsets translate a-to-b orders-3:1200 orders-4:800
        strait offsets translate a-to-b --group billing
        strait offsets translate a-to-b --reverse --group billing -o json
        strait offsets translate a-to-b < offsets.csv > translated.csv""",
    "offsets export": """
        strait offsets export a-to-b > positions.csv
        strait offsets export a-to-b --format mirus --connector my-mirus
        strait offsets export a-to-b --to-connect mm2-offsets.a.internal""",
    "offsets import": """
        strait offsets import a-to-b --from-connect mm2-offsets.a.internal --dry-run
        strait offsets import a-to-b --group ureplicator-a-b
        strait offsets import a-to-b positions.csv --topic orders""",
    "map rebuild": """
        strait map rebuild a-to-b --dry-run         # what could be written, and what would stay unknown
        strait map rebuild a-to-b --topic orders --yes""",
    "audit run": """
        strait audit run a-to-b                     # every record of every topic
        strait audit run a-to-b orders payments --strong --out certificate.json --key audit-key.pem
        strait audit run a-to-b --sample 0.05 --seed 2026-11-26 --budget 50MB/s
        strait audit run a-to-b --ledger            # the destination alone
        strait audit run --relation order --source a --destination b --copy-name a.{topic} orders""",
    "audit verify": """
        strait audit verify certificate.json
        strait audit verify certificate.json --key audit-key.pub.pem""",
    "audit export": """
        strait audit export 20261126T161700Z-3fa2c1 --out lacking.jsonl""",
    "audit repair": """
        strait audit repair 20261126T161700Z-3fa2c1 --dry-run
        strait audit repair 20261126T161700Z-3fa2c1 --topic orders""",
    "audit list": """
        strait audit list a-to-b -o json""",
    "schema": """
        strait schema > links.schema.json""",
    "import mirus": """
        strait import mirus connector.json worker.properties > links.yaml""",
    "import mm2": """
        strait import mm2 mm2.properties > links.yaml""",
    "demo up": """
        strait demo
        strait demo up --airflow-port 8081""",
    "demo status": """
        strait demo status""",
    "demo reject": """
        strait demo reject""",
    "demo kill": """
        strait demo kill""",
    "demo down": """
        strait demo down""",
    "demo logs": """
        strait demo logs airflow --lines 50""",
}


def group_examples(group: str) -> str:
    """Return the first example of each command of a group."""
    first = (inspect.cleandoc(text) for name, text in _EXAMPLES.items() if name.startswith(f"{group} "))
    return "\n".join(text.splitlines()[0] for text in first)


def examples(command: str) -> str:
    """Return the examples that end a command's help page."""
    return inspect.cleandoc(_EXAMPLES[command])

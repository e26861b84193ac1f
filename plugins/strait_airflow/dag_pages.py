"""Texts of the DAGs' pages in Airflow."""

MONITOR_PAGE = """
### What this DAG does, whenever there is something to do

Airflow's triggerer watches the link's settings, the topics of its source, its plan, reports and applications. A finding
starts a run; the note of the run has the reason and the result. There is also a run each hour.

**A red run means that the link needs an operator**: its note and the log of `verdict` have one line for each thing, with
its remedy. Green means that nothing is to be done.

| task | |
|---|---|
| `monitor` | Shows the changes, creates missing topics and publishes the plan, which running applications apply within 1 s. Determines which applications need an action. |
| `submit` | For each of these: submits it, replaces it, or stops it; its log shows why it exited. |
| `healthy` | For each of these: waits until every slot has reported, or fails with the cause. |
| `metrics` | Prints one line per topic: records, rates, lag, waiting partitions and their reason; then consumer groups that are not in sync, and why. |
| `verdict` | Fails if the link needs an operator. Its state is that of the run. |

**Edit** the Variable `strait_topics_{link}` (`include`, `regex`, `exclude`) to change what is copied. An invalid edit
fails one run; the last good plan stays active and copying continues. **Trigger** this DAG to plan now.
**Clear** one `submit`, in any run, to restart that application once, also if it exited too often before; so does the
parameter `restart`. **Pause** the DAG to freeze the plan and its applications: those that run keep copying, those that
exit are not submitted again.

[What the link does now]({page}): its topics and partitions, lag, what waits and why.
"""

APPROVAL_PAGE = """
### What this DAG does, whenever the link's watch finds something

`look` determines whether the plan has changes that need approval. `ask` shows them on the page *Required Actions* and
waits, without occupying a worker. `act` applies exactly the approved plan. If the plan has changed since, `act` fails
and the next run asks again. A rejected plan is not proposed again until it changes; the Variable
`strait_rejected_{link}` stores it: delete it to be asked again. Without a response within one hour, `act` fails, since
the changes need an operator, and the request is made again. [What the link does now]({page}).
"""

PAUSE_PAGE = """
### Pause or resume a link, a topic or a partition

Trigger it with the scope in `what`: TOPIC or TOPIC:PARTITION of the source; empty means the whole link. Slots stop
within 2 s, and resume within a few seconds at the offset where they stopped. `strait status` shows the operator, the
time and the reason.

A topic that was deleted on one side waits for a decision (`destination_deleted`, `destination_recreated`,
`source_recreated`). Trigger the DAG with the topic in `what` and `continue` or `restart` as `action`: replication
resumes from the last confirmed record, or copies the topic again from its first one, with the next plan.

`acknowledge` as `action` keeps with the losses of `what`, or of the whole link, who has taken note of them, and the reason.
"""

QUARANTINE_PAGE = """
### Replay or drop quarantined records

Trigger it first with `dry_run`: the log of `settle` shows the records, and nothing is changed. `replay` writes each
record once, unchanged, where it was to go, or into the topic `to`; `drop` marks records as discarded. `strait quarantine
list` shows what is left.
"""

FAILOVER_PAGE = """
### Move a link's clients to its destination

Trigger it first with `dry_run`: the log of `failover` shows what each step finds now, and nothing is changed. Without
`dry_run` it waits until producers have stopped and all records are copied, commits the consumer groups' offsets and
stops the link. Until then, a failure or a stop of the task takes back what was done; a task that was killed is continued
by its retry. `strait failover LINK --history` shows the reports.
"""

AUDIT_PAGE = """
### Compare the contents of every link's topics, every night

`compare` compares a sample of the records of source and destination, another one each night, and fails if something differs
that neither the loss log nor the quarantine explains, or if nothing could be compared; its log names the offsets. With `sample` 1 it compares every record. A
retry continues where the audit stopped. `strait audit list LINK` shows all results. The DAG is paused at first: unpause it, or
trigger it with `link`.
"""

REHEARSAL_PAGE = """
### What this DAG does, every week

`rehearse` goes through a failover of each link with consumer groups of other names, without touching a client. Its log
shows what is missing, and how many percent of the steps hold. `strait failover LINK --history` shows the reports.
To rehearse one link now, trigger `strait-failover` with `kind` rehearsal.
"""

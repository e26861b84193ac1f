// How ready a link is for a failover, its failovers and rehearsals, and beginning one.
import { charts } from "./chart.js";
import { opens } from "./dialog.js";
import { above, address, ago, ask, badge, cell, el, exact, facts, plural, seconds, table, when } from "./dom.js";
import { room } from "./frame.js";
import { listing, pager } from "./paging.js";
import { frame } from "./tabs.js";
import { failoverWizard, rehearseDialog, unfenceDialog } from "./wizard.js";

const HEADS = ["When", "Kind", "Outcome", "By", "RTO", "RPO, offsets", "RPO", "Groups exact", "Steps that hold"];
const STEP_HEADS = ["Step", "Verdict", "Seconds", "What was found"];

const percent = (value) => (value === null ? "–" : `${value} %`);

function readinessPart(link, found) {
  const { readiness } = found;
  if (readiness === null) return el("p", {}, "It was never rehearsed, so nobody knows whether a failover would hold.");
  const missing = readiness.missing.map((step) => el("li", {}, badge(step.badge), ` ${step.name}: ${step.detail}`));
  const whole = el("p", { class: "good" }, "Every step of the last rehearsal held.");
  return el("div", {},
    el("p", {}, el("strong", {}, percent(readiness.score)), ` of ${plural(readiness.steps, "step")} held at the `,
      el("a", { href: address("link", link, "recovery", readiness.id) }, `rehearsal of ${when(readiness.at_ms)}`), "."),
    missing.length ? el("ul", {}, ...missing) : whole);
}

const auditedPart = ({ audited }) => (audited === null ? el("p", {}, "The results of audits are not known yet.")
  : el("p", {}, badge(audited.badge), ` ${audited.detail}`));

// What a wave has moved is part of what it was.
const kindOf = (record) => record.kind + (record.wave_topics.length ? `, a wave of ${record.wave_topics.join(", ")}` : "");

function reportRow(link, record) {
  const groups = record.groups === null ? "–" : `${record.groups_exact} of ${record.groups}`;
  return el("tr", {},
    cell(el("a", { href: address("link", link, "recovery", record.id) }, ago(record.began_at_ms)), "title"),
    cell(kindOf(record), "name"), cell(badge(record.badge), "plain"), cell(record.by, "name"),
    cell(seconds(record.rto_seconds), "number"), cell(exact(record.rpo_records), "number"),
    cell(seconds(record.rpo_seconds), "number"), cell(groups, "number"), cell(percent(record.score), "number"));
}

function trendPart(trend) {
  const rehearsals = trend.filter((one) => one.kind === "rehearsal");
  const failovers = trend.filter((one) => one.kind !== "rehearsal");
  const of = (records, name) => [{ name: "", points: records.map((one) => [one.began_at_ms, one[name]]) }];
  const time = { read: seconds, tick: seconds, isTime: true };
  const all = [
    { id: "score", title: "Steps that hold, in rehearsals", series: of(rehearsals, "score"), read: percent, tick: percent },
    { id: "rto", title: "RTO of failovers", series: of(failovers, "rto_seconds"), ...time },
    { id: "rpo", title: "RPO of failovers", series: of(failovers, "rpo_seconds"), ...time },
  ];
  return trend.length ? [el("h3", {}, "Trend"), charts(all, room())] : [];
}

function actions(link, found) {
  const { may, dags } = link;
  const title = found.running ? "Continue the failover" : "Fail over";
  const buttons = [opens("failover", title, () => failoverWizard(link, found), may.failover),
    opens("rehearse", "Rehearse", () => rehearseDialog(link), may.failover)];
  if (found.fenced) buttons.push(opens("unfence", "Remove the fence", () => unfenceDialog(link), may.failover));
  const why = may.failover ? "" : `Airflow does not let you trigger DAG ${dags.failover}.`;
  return [el("p", { class: "actions" }, ...buttons), ...(why ? [el("p", { class: "soft" }, why)] : [])];
}

const unknown = (found) => (found.error ? el("p", { class: "bad" }, found.error)
  : el("p", { role: "status" }, "The destination is being asked …"));

const reports = listing("reports-", {});

export const recoveryView = (name, show) => frame(name, "recovery", ["failover", name, "--history"],
  [ask(`links/${encodeURIComponent(name)}/recovery?${reports.query()}`)], (link, found) => recoveryPart(link, found, show));

function recoveryPart(link, found, show) {
  if (found.looking || (found.error && !found.total)) return [unknown(found)];
  const rows = found.rows.map((one) => reportRow(link.link, one));
  return [...(found.error ? [unknown(found)] : []), ...actions(link, found),
    el("h3", {}, "Readiness"), readinessPart(link.link, found), auditedPart(found),
    ...trendPart(found.trend), el("h3", {}, "Reports"),
    table("Reports", HEADS, rows, "No failover and no rehearsal was ever begun."), pager(reports, found.total, show)];
}

const PARTS = { safe: "Safe", lost: "Lost", groups: "Consumer groups", next: "What to do next", left: "What was left behind" };

// What the terminal prints once a failover is done.
const screenPart = (parts) => Object.entries(parts).flatMap(([name, lines]) => [el("h3", {}, PARTS[name]),
  el("ul", { "aria-label": PARTS[name] }, ...lines.map((line) => el("li", {}, line)))]);

export async function reportView(name, id) {
  const found = await ask(`links/${encodeURIComponent(name)}/failover?${new URLSearchParams({ id })}`);
  const back = above(name, ["Recovery", ["link", name, "recovery"]]);
  if (!found.summary) return [back, el("h2", {}, id), unknown(found)];
  const steps = found.steps.map((step) => el("tr", {}, cell(step.name, "title"), cell(badge(step.badge), "plain"),
    cell(step.seconds.toFixed(1), "number"), cell(step.detail, "name")));
  const missing = found.missing.map((one) => el("tr", {}, cell(`${one.topic}-${one.partition}`, "name"),
    cell(exact(one.from_offset), "number"), cell(exact(one.to_offset), "number")));
  const figures = [["Began", when(found.began_at_ms)], ["Ended", found.ended_at_ms ? when(found.ended_at_ms) : "–"],
    ["By", found.by], ["Reason", found.reason || "–"], ["RTO", seconds(found.rto_seconds)],
    ["RPO", seconds(found.rpo_seconds)], ["Offsets known to be missing", exact(found.rpo_records)],
    ["Steps that hold", percent(found.score)], ["Version of Strait", found.strait_version]];
  return [back, el("h2", {}, `${kindOf(found)}, ${found.outcome}`), el("p", {}, found.summary),
    ...screenPart(found.screen), facts(figures),
    el("h3", {}, "Steps"), table("Steps", STEP_HEADS, steps, "None yet."),
    ...(missing.length ? [el("h3", {}, "Missing on the destination"),
      table("Missing", ["Partition", "From offset", "To offset"], missing, "")] : [])];
}

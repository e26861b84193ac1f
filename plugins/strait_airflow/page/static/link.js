// One link: its figures, partitions, slots, losses and the plan in force.
import { airflowLink, ask, cell, el, facts, millis, number, seconds, table, when } from "./dom.js";
import { chartsPart } from "./history.js";
import { partitionsPart, partitionsQuery } from "./partitions.js";

const figures = (link) => facts([
  ["State", link.state.replaceAll("_", " ")],
  ["Lag, records", number(link.lag_records)],
  ["Lag", seconds(link.lag_seconds)],
  ["Records/s", number(link.records_per_second)],
  ["Latency p99", millis(link.latency_ms_p99)],
  ["Caught up", number(link.caught_up)],
  ["Losses", number(link.losses)],
  ["Quarantined", number(link.quarantined)],
]);

// The link's DAGs in Airflow, and their runs.
const dagsPart = (link) => el("p", {}, "In Airflow: ", ...link.own_dags.flatMap((dag, at) => [at ? "; " : "",
  airflowLink(`dags/${encodeURIComponent(dag)}`, dag), ", its ",
  airflowLink(`dags/${encodeURIComponent(dag)}/runs`, "runs")]));

function slotsPart(link) {
  const rows = (link.slots || []).map((slot) => el("tr", {},
    cell(`${slot.group} ${slot.slot}`),
    cell(slot.application || "–", "name"),
    cell(slot.host || "–", "name"),
    cell(slot.silent ? el("span", { class: "bad" }, "silent") : "reports"),
    cell(number(slot.records_per_second), "number"),
    cell(millis(slot.latency_ms_p99), "number")));
  const heads = ["Slot", "Application", "Host", "State", "Records/s", "Latency p99"];
  return [el("h3", {}, "Slots"), table("Slots", heads, rows, "None yet.")];
}

function lossesPart(link) {
  const rows = (link.losses_newest || []).map((loss) => el("tr", {},
    cell(when(loss.at_ms)), cell(`${loss.topic}-${loss.partition}`, "name"), cell(loss.cause), cell(loss.action)));
  return [el("h3", {}, "Losses"), table("Losses", ["When", "Partition", "Cause", "Action"], rows, "None.")];
}

function plansPart(link) {
  const plans = (link.plans || []).map((plan) => el("details", { id: `plan-${plan.group}` },
    el("summary", {}, `Task group ${plan.group}, version ${plan.version}${plan.stopped ? ", stopped" : ""}`),
    el("pre", {}, JSON.stringify(plan.settings, null, 2))));
  return [el("h3", {}, "Plan in force"), ...plans];
}

export async function linkView(name, show) {
  const path = `links/${encodeURIComponent(name)}`;
  const [link, found, charts] = await Promise.all([ask(path), ask(`${path}/partitions?${partitionsQuery(name)}`),
    chartsPart(name)]);
  const head = [el("p", {}, el("a", { href: "#/" }, "All links")), el("h2", {}, name),
    el("p", { class: "soft" }, link.source ? `${link.source} → ${link.destination}` : ""), dagsPart(link)];
  if (link.error) return [...head, el("p", { class: "bad" }, link.error)];
  const below = [...slotsPart(link), ...lossesPart(link), ...plansPart(link)];
  return [...head, figures(link), ...partitionsPart(found, show), ...charts, ...below];
}

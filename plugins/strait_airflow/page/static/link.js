// One link: what can be changed, its figures, partitions, past, slots, applications, losses and the plan in force.
import { applicationsPart } from "./applications.js";
import { approvalPart } from "./approve.js";
import { changePart } from "./change.js";
import { above, address, airflowLink, airflowPart, ask, el, facts, millis, number, seconds } from "./dom.js";
import { chartsPart } from "./history.js";
import { partitionsPart, partitionsQuery } from "./partitions.js";
import { rowButtons } from "./pause.js";
import { plansPart } from "./plan.js";
import { quarantinePart } from "./quarantine.js";
import { lossesPart, slotsPart } from "./slots.js";

const figures = (link) => facts([
  ["State", link.state.replaceAll("_", " ")],
  ["Lag, records", number(link.lag_records)],
  ["Lag", seconds(link.lag_seconds)],
  ["Held back by open transactions", number(link.held_back_records)],
  ["Records/s", number(link.records_per_second)],
  ["Latency p99", millis(link.latency_ms_p99)],
  ["Caught up", number(link.caught_up)],
  ["Losses", number(link.losses)],
  ["Quarantined", number(link.quarantined)],
]);

// What only an operator can do, most urgent first.
const needsPart = (link) => (link.needs?.length ? [el("section", { "aria-label": "Needs an operator" },
  el("h3", { class: "bad" }, "Needs an operator"),
  el("ul", {}, ...link.needs.map((need) => el("li", {}, `${need.text}. ${need.remedy}.`))))] : []);

const viewsPart = (link) => el("nav", { "aria-label": "Views of the link" },
  el("a", { href: address("link", link, "groups") }, "Consumer groups"), " · ",
  el("a", { href: address("link", link, "recovery") }, "Recovery"));

// The link's DAGs in Airflow, and their runs.
const dagsPart = (link) => el("p", {}, "In Airflow: ", ...link.own_dags.flatMap((dag, at) => [at ? "; " : "",
  airflowLink(`dags/${encodeURIComponent(dag)}`, dag), ", its ",
  airflowLink(`dags/${encodeURIComponent(dag)}/runs`, "runs")]));

export async function linkView(name, show) {
  const path = `links/${encodeURIComponent(name)}`;
  const [link, found, charts, applications, problems] = await Promise.all([ask(path),
    ask(`${path}/partitions?${partitionsQuery(name)}`), chartsPart(name), applicationsPart(name), airflowPart()]);
  const head = [above(), el("h2", {}, name),
    el("p", { class: "soft" }, link.source ? `${link.source} → ${link.destination}` : ""), dagsPart(link),
    ...problems, viewsPart(name), ...changePart(link), ...await approvalPart(link)];
  if (link.error) return [...head, el("p", { class: "bad" }, link.error), ...applications];
  return [...head, ...needsPart(link), figures(link), ...partitionsPart(name, found, show, (row) => rowButtons(link, row)), ...charts,
    ...slotsPart(link), ...applications, ...lossesPart(link), ...await quarantinePart(link, show), ...plansPart(link)];
}

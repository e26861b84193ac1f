// One link: what can be changed, its figures, partitions, past, slots, applications, losses and the plan in force.
import { applicationsPart } from "./applications.js";
import { approvalPart } from "./approve.js";
import { changePart } from "./change.js";
import { above, address, ago, airflowLink, airflowPart, ask, badge, count, el, exact, facts, millis, prose, seconds, total,
  untilLoss } from "./dom.js";
import { askTopics, topicsPart } from "./by_topic.js";
import { chartsPart } from "./history.js";
import { askPartitions, partitionsPart } from "./partitions.js";
import { rowButtons } from "./pause.js";
import { plansPart } from "./plan.js";
import { quarantinePart } from "./quarantine.js";
import { lossesPart, slotsPart } from "./slots.js";

const figures = (link) => facts([
  ["Lag, records", total(link.lag_records, link.lag_unknown)],
  ["Lag", seconds(link.lag_seconds)],
  ["Lost in, without progress", untilLoss(link.seconds_to_loss)],
  ["Held back by open transactions", total(link.held_back_records, 0)],
  ["Records/s", count(link.records_per_second)],
  ["Latency p99", millis(link.latency_ms_p99)],
  ["Partitions caught up", `${exact(link.caught_up)} of ${exact(link.partitions)}`],
  ["Losses", count(link.losses)],
  ["Quarantined", count(link.quarantined)],
]);

const headPart = (link) => el("p", { class: "head" }, badge(link.badge),
  ...(link.source ? [el("span", {}, `${link.source} → ${link.destination}`)] : []),
  ...(link.last_event ? [el("span", { class: "soft" }, "Last event ", ago(link.last_event.at_ms), `: ${link.last_event.text}`)]
    : []));

// What only an operator can do, most urgent first.
const needsPart = (link) => (link.needs?.length ? [el("section", { "aria-label": "Needs an operator" },
  el("h3", { class: "bad" }, "Needs an operator"),
  el("ul", {}, ...link.needs.map((need) => el("li", {}, prose(`${need.text}. ${need.remedy}.`)))))] : []);

const viewsPart = (link) => el("nav", { "aria-label": "Views of the link" },
  el("a", { href: address("link", link, "groups") }, "Consumer groups"), " · ",
  el("a", { href: address("link", link, "recovery") }, "Recovery"));

// The link's DAGs in Airflow, and their runs.
const dagsPart = (link) => el("p", {}, "In Airflow: ", ...link.own_dags.flatMap((dag, at) => [at ? "; " : "",
  airflowLink(`dags/${encodeURIComponent(dag)}`, dag), ", its ",
  airflowLink(`dags/${encodeURIComponent(dag)}/runs`, "runs")]));

export async function linkView(name, show) {
  const path = `links/${encodeURIComponent(name)}`;
  const [link, topics, found, charts, applications, problems] = await Promise.all([ask(path), askTopics(path),
    askPartitions(path), chartsPart(name, show), applicationsPart(name), airflowPart()]);
  const error = link.error ? [el("p", { class: "bad", role: "alert" }, link.error)] : [];
  const head = [above(), el("h2", {}, name), headPart(link), ...error, ...problems, viewsPart(name), dagsPart(link),
    ...changePart(link), ...await approvalPart(link)];
  if (!link.known) return [...head, ...applications];
  return [...head, ...needsPart(link), figures(link), ...topicsPart(name, topics, show),
    ...partitionsPart(name, found, show, (row) => rowButtons(link, row)), ...charts, ...slotsPart(link), ...applications,
    ...lossesPart(link), ...await quarantinePart(link, show), ...plansPart(link)];
}

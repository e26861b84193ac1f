// One link: what needs an operator, its figures and its past; and the tabs of its topics, partitions, applications and plan.
import { applicationsPart, askApplications } from "./applications.js";
import { askTopics, topicsPart } from "./by_topic.js";
import { ago, count, el, exact, facts, millis, perSecond, seconds, total, untilLoss } from "./dom.js";
import { chartsPart } from "./history.js";
import { lossesPart } from "./losses.js";
import { askPartitions, partitionsPart } from "./partitions.js";
import { rowButtons } from "./pause.js";
import { hasPlan, plansPart } from "./plan.js";
import { quarantinePart } from "./quarantine.js";
import { slotsPart } from "./slots.js";
import { dagsPart, frame, needsPart } from "./tabs.js";

const path = (name) => `links/${encodeURIComponent(name)}`;
const red = (value) => (value ? el("span", { class: "bad" }, count(value)) : count(value));

const figures = (link) => facts([
  ["Lag, records", total(link.lag_records, link.lag_unknown)],
  ["Lag", seconds(link.lag_seconds)],
  ["Lost in, without progress", untilLoss(link.seconds_to_loss)],
  ["Records/s", perSecond(link.records_per_second)],
  ["Latency p99", millis(link.latency_ms_p99)],
  ["Partitions caught up", `${exact(link.caught_up)} of ${exact(link.partitions)}`],
  ["Held back by open transactions", total(link.held_back_records, 0)],
  ["Losses", link.losses_new ? el("span", { class: "bad" }, `${exact(link.losses)}, ${exact(link.losses_new)} new`) : count(link.losses)],
  ["Quarantined", red(link.quarantined)],
]);

const eventPart = (link) => (link.last_event
  ? [el("p", { class: "soft" }, "Last event ", ago(link.last_event.at_ms), `: ${link.last_event.text}`)] : []);

export const linkView = (name, show) => frame(name, "", ["status", name], [chartsPart(name, show)],
  async (link, charts) => (link.known ? [...needsPart(link), ...(hasPlan(link) ? [figures(link)] : plansPart(link)), ...eventPart(link), ...charts, ...lossesPart(link),
    ...await quarantinePart(link, show), dagsPart(link)] : [dagsPart(link)]));

export const topicsView = (name, show) => frame(name, "topics", ["status", name], [askTopics(path(name))],
  (link, found) => topicsPart(link, found, show));

export const partitionsView = (name, show) => frame(name, "partitions", ["status", name, "-o", "wide"],
  [askPartitions(path(name))], (link, found) => partitionsPart(link, found, show, (row) => rowButtons(link, row)));

export const applicationsView = (name) => frame(name, "applications", ["applications", name], [askApplications(path(name))],
  (link, found) => [...slotsPart(link), ...applicationsPart(found)]);

export const planView = (name) => frame(name, "plan", ["plan", name], [], (link) => [...plansPart(link), dagsPart(link)]);

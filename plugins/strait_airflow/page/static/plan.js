// The plan in force, and where its settings come from.
import { ago, bytes, el, exact, facts, prose } from "./dom.js";
import { none } from "./tabs.js";

const NO_PLAN = "No plan has been published, so nothing is copied. The next run of the link's DAG publishes one, and so does "
  + "`strait apply`.";

const limits = (budgets) => budgets.map((one) =>
  `${one.topic_class || "the whole link"} ${bytes(one.bytes_per_second)}/s`).join(", ");

function indented(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function planPart(plan) {
  const origins = Object.entries(plan.origins).map(([what, where]) => el("li", {}, `${what}: ${where}`));
  const said = [
    ["Published", ago(plan.published_at_ms)],
    ["Slots", exact(plan.slots)],
    ["Topics", exact(plan.topics)],
    ["Topics and partitions that wait", exact(plan.waiting)],
    ["Limits", limits(plan.budgets) || "none"],
  ];
  if (plan.backfill) said.push(["Limits of this task group", plan.backfill]);
  if (plan.consumer_groups) said.push(["Consumer groups synchronized", plan.consumer_groups.join(", ")]);
  const block = plan.topics_block
    ? [el("details", { id: `topics-${plan.group}` }, el("summary", {}, "Topics as they are set there"),
      el("pre", {}, indented(plan.topics_block)))] : [];
  const title = `Task group ${plan.group}, version ${plan.version}${plan.stopped ? ", stopped" : ""}`;
  const from = origins.length
    ? [el("p", {}, "Settings that do not come from the links file:"), el("ul", {}, ...origins)] : [];
  return el("div", {}, el("h4", {}, title), facts(said), ...from, ...block);
}

export const hasPlan = (link) => (link.plans ?? []).length > 0;

export const plansPart = (link) => (hasPlan(link) ? link.plans.map(planPart)
  : [el("p", {}, prose(none(link, NO_PLAN)))]);

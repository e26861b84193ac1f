// The plan in force, and where its settings come from.
import { ago, bytes, el, exact, facts } from "./dom.js";

const limits = (budgets) => budgets.map((one) =>
  `${one.topic_class || "the whole link"} ${bytes(one.bytes_per_second)}/s`).join(", ");

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
      el("pre", {}, JSON.stringify(JSON.parse(plan.topics_block), null, 2)))] : [];
  const title = `Task group ${plan.group}, version ${plan.version}${plan.stopped ? ", stopped" : ""}`;
  const from = origins.length
    ? [el("p", {}, "Settings that do not come from the links file:"), el("ul", {}, ...origins)] : [];
  return el("div", {}, el("h4", {}, title), facts(said), ...from, ...block);
}

export const plansPart = (link) => [...(link.plans ?? []).map(planPart)];

// The Spark applications of a link: where they run, since when, why they ended and what they said last.
import { ask, cell, el, table, when } from "./dom.js";

const HEADS = ["Application", "State", "Submitted", "Ended before, and why", "Log"];
const LIVING = ["running", "submitted"];

const lastLines = (one) => el("details", { id: `log-${one.name}` }, el("summary", {}, "Last lines"),
  el("pre", { class: "log", tabindex: "0" }, one.log_lines.join("\n")));

function applicationRow(one, logs) {
  const [newest, ...earlier] = one.submissions;
  const held = one.not_before_ms ? [el("p", { class: "bad" }, `Not submitted before ${when(one.not_before_ms)}.`)] : [];
  const ended = [newest, ...earlier].filter((each) => each.cause).map((each) =>
    el("li", {}, `${when(each.submitted_at_ms)}: ${each.cause}`));
  const none = logs ? "none here" : "Airflow does not let you read it";
  const log = one.log_lines.length ? lastLines(one) : el("span", { class: "soft" }, none);
  return el("tr", {},
    cell(`${one.group}${one.standby ? ", standby" : ""}`),
    cell(el("span", { class: LIVING.includes(newest.state) ? "good" : "bad" }, newest.state)),
    cell(when(newest.submitted_at_ms)),
    el("td", { class: "name" }, ...held, ended.length ? el("ul", {}, ...ended) : "never"),
    el("td", { class: "name" }, el("span", { class: "soft" }, newest.log), log));
}

export async function applicationsPart(link) {
  const found = await ask(`links/${encodeURIComponent(link)}/applications`);
  const head = el("h3", {}, "Applications");
  if (found.error) return [head, el("p", { class: "bad" }, found.error)];
  const empty = found.looking ? "Looking …"
    : "Airflow's API server sees none: they run on another host, or none was ever submitted. Slots report anyway.";
  return [head, table("Applications", HEADS, found.applications.map((one) => applicationRow(one, found.logs)), empty)];
}

// The Spark applications of a link: where they run, since when, why they ended and what they said last.
import { ago, ask, badge, cell, el, table, when } from "./dom.js";

const HEADS = ["Application", "State", "Submitted", "Ended before, and why", "Log"];

const lastLines = (one) => el("details", { id: `log-${one.name}` }, el("summary", {}, "Last lines"),
  el("pre", { class: "log", tabindex: "0" }, one.log_lines.join("\n")));

const hosted = (one) => one.links.length ? [el("p", { class: "soft" }, `of the links ${one.links.join(", ")}`)] : [];

function applicationRow(one, logs) {
  const [newest, ...earlier] = one.submissions;
  const held = one.not_before_ms ? [el("p", { class: "bad" }, `Not submitted before ${when(one.not_before_ms)}.`)] : [];
  const ended = [newest, ...earlier].filter((each) => each.cause).map((each) =>
    el("li", {}, "submitted ", ago(each.submitted_at_ms), `: ${each.cause}`));
  const none = logs ? "none here" : "Airflow does not let you read it";
  const log = one.log_lines.length ? lastLines(one) : el("span", { class: "soft" }, none);
  return el("tr", {},
    cell(el("div", {}, `${one.group || `pool ${one.pool}`}${one.standby ? ", standby" : ""}`, ...hosted(one)), "title"),
    cell(badge(one.badge), "plain"),
    cell(ago(newest.submitted_at_ms)),
    cell(el("div", {}, ...held, ended.length ? el("ul", {}, ...ended) : "never"), "name"),
    cell(el("div", {}, el("code", { class: "soft" }, newest.log), log), "name"));
}

export const askApplications = (path) => ask(`${path}/applications`);

export function applicationsPart(found) {
  const head = el("h3", {}, "Applications");
  const error = found.error ? [el("p", { class: "bad" }, found.error)] : [];
  if (found.error && !found.applications.length) return [head, ...error];
  const empty = found.looking ? "Looking …"
    : "Airflow's API server sees none: they run on another host, or none was ever submitted. Slots report anyway.";
  return [head, ...error, table("Applications", HEADS, found.applications.map((one) => applicationRow(one, found.logs)), empty)];
}

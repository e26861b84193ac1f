// Pausing and resuming: a link, a topic or a partition.
import { choose, field, opens, select } from "./dialog.js";
import { el, label, when } from "./dom.js";
import { actDialog } from "./runs.js";

// As the DAG takes them: TOPIC or TOPIC:PARTITION, nothing for the link.
const key = (topic, partition) => (topic && partition !== null ? `${topic}:${partition}` : topic);
const words = (topic, partition) =>
  (!topic ? "the whole link" : partition === null ? `topic ${topic}` : `partition ${topic}-${partition}`);
const scope = (topic, partition) => [key(topic, partition), words(topic, partition)];

function dialog(link, action, about) {
  const title = action === "pause" ? "Pause" : "Resume";
  return actDialog(`${title}: link ${link.link}`, title, about, ({ what, reason = "" }, panel) =>
    panel.start(link.dags.pause, { link: link.link, action, what, reason }));
}

function pauseDialog(link, scopes) {
  return dialog(link, "pause", [
    el("p", {}, "Copying stops within 2 s, and stays so until somebody resumes it. Nothing is lost meanwhile if the "
      + "source keeps its records for long enough."),
    choose("What to pause", "what", scopes),
    field("Reason", el("input", { name: "reason", maxlength: 200, autocomplete: "off" }), "Shown to all who look."),
  ]);
}

function resumeDialog(link, pauses) {
  const scopes = pauses.map((one) => scope(one.topic, one.partition));
  const by = pauses.map((one) => el("li", {}, `${words(one.topic, one.partition)}: paused by ${one.by}, `
    + when(one.at_ms) + (one.reason ? `: ${one.reason}` : "")));
  return dialog(link, "resume", [
    el("ul", {}, ...by),
    choose("What to resume", "what", scopes),
    el("p", {}, "Copying goes on within seconds at the offset where it stopped."),
  ]);
}

export function pauseButtons(link) {
  const { pauses = [], may } = link;
  const resume = opens("resume", "Resume", () => resumeDialog(link, pauses), may.pause);
  return [
    opens("pause", "Pause", () => pauseDialog(link, [scope("", null)]), may.pause),
    ...(pauses.length ? [resume] : []),
  ];
}

// One decision about a topic that was deleted on one side, as `strait resolve` takes it.
function resolveDialog(link, row) {
  const title = `Decide: link ${link.link}, topic ${row.topic}`;
  const about = [
    el("p", {}, row.detail),
    field("Decision", select("action", [
      ["continue", "Continue after the last confirmed record"],
      ["restart", "Copy the source topic again from its first record"],
    ])),
    field("Reason", el("input", { name: "reason", maxlength: 200, autocomplete: "off" }), "Kept in the loss log."),
    el("p", {}, "The next plan follows the decision. A source topic that was created again is copied from its first "
      + "record either way."),
  ];
  return actDialog(title, "Decide", about, ({ action, reason = "" }, panel) =>
    panel.start(link.dags.pause, { link: link.link, action, what: row.topic, reason }));
}

// For one row of the partitions: to pause or resume it, and to decide if it waits for that.
export function rowButtons(link, row) {
  if (!(link.resolvable ?? []).includes(row.reason)) return [pauseButton(link, row)];
  const decide = opens(`resolve-${row.topic}-${row.partition}`, "Decide", () => resolveDialog(link, row), link.may.pause);
  return [label(decide, `Decide about ${row.topic}`), pauseButton(link, row)];
}

// What is paused can be resumed by the name by which it was paused.
function pauseButton(link, row) {
  const covering = (link.pauses ?? []).filter((one) =>
    !one.topic || (one.topic === row.topic && (one.partition ?? row.partition) === row.partition));
  const scopes = [...(row.partition === null ? [] : [scope(row.topic, row.partition)]), scope(row.topic, null),
    scope("", null)];
  const [text, open] = covering.length
    ? ["Resume", () => resumeDialog(link, covering)]
    : ["Pause", () => pauseDialog(link, scopes)];
  const button = opens(`change-${row.topic}-${row.partition}`, text, open, link.may.pause);
  return label(button, `${text} ${row.topic}${row.partition === null ? "" : `-${row.partition}`}`);
}

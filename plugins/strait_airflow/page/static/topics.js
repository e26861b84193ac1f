// The editor of a link's topics: checks while somebody types, shows what the change would do, and saves the Variable.
import { field, openDialog } from "./dialog.js";
import { airflow, ask, askWith, bytes, el, plural, put } from "./dom.js";
import { newestRun, nextRun, runPanel } from "./runs.js";

const TYPING_MS = 300;
const LISTS = [
  ["include", "Topics", "Exact names, one per line."],
  ["regex", "Regular expressions", "One per line; each must match a topic's whole name."],
  ["exclude", "Exclude", "Regular expressions, one per line; they win over both lists above."],
];

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line);
const list = (items) => el("ul", {}, ...items.map((item) => el("li", {}, item)));
const section = (title, found, words) => (!found.total ? [] : [
  el("h3", {}, `${title}: ${found.total}`),
  list([...found.shown.map(words), ...(found.total > found.shown.length ? ["…"] : [])]),
]);

function duration(seconds) {
  if (seconds === null) return "how long that takes is not known yet";
  const hours = seconds / 3600;
  if (hours >= 1) return `about ${hours.toFixed(1)} hours at the present rate`;
  return `about ${Math.ceil(seconds / 60)} min at the present rate`;
}

// What `preview_of` answers, in words.
function previewPart({ effects, waits, left_out: leftOut, forecast, needs_approval: asked }) {
  const { records, bytes: left, seconds } = forecast.backfill;
  const backlog = `${plural(records, "record")}, ${bytes(left)}, ${duration(seconds)}`;
  return [
    ...(effects.total || waits.total ? [] : [el("p", {}, "This changes nothing.")]),
    ...section("What is done", effects, (one) => `${one.sign} ${one.verb} ${one.subject}`
      + (one.detail ? `: ${one.detail}` : "")),
    ...(records ? [el("p", {}, `To copy: ${backlog}.`)] : []),
    ...section("What will wait", waits, (one) => `${one.topic}: ${one.reason}: ${one.detail}. ${one.remedy}`),
    ...section("Left out", leftOut, (one) => `${one.topic}: ${one.detail}`),
    ...section("Risks", forecast.risks, (one) => `${one.topic || "the link"}: ${one.detail}`),
    ...forecast.not_known.map((text) => el("p", { class: "soft" }, `Not known: ${text}`)),
    ...(asked && effects.total ? [el("p", {}, "After saving, somebody has to approve this.")] : []),
  ];
}

async function save(key, value) {
  const path = `variables/${encodeURIComponent(key)}`;
  try {
    await airflow("PATCH", `${path}?update_mask=value`, { key, value });
  } catch (error) {
    if (error.status !== 404) throw error;
    await airflow("POST", "variables", { key, value, description: "Topics of a Strait link" });
  }
}

// Saves if nobody else has meanwhile, and shows the run that acts upon it.
async function saveAndFollow(link, path, seen, block, panel) {
  const value = JSON.stringify(block, null, 2);
  panel.say("Saving…");
  if ((await ask(path)).value !== seen) throw new Error("Somebody has changed the topics meanwhile. Open this again.");
  const before = await newestRun(link.dags.restart);
  await save(link.variable, value);
  if ((await ask(path)).value !== value) {
    throw new Error(`Saved, but Airflow reads Variable ${link.variable} from elsewhere: its environment or a secrets `
      + "backend. Change it there.");
  }
  panel.say("Saved. Waiting for the run that acts upon it…");
  const run = await nextRun(link.dags.restart, before);
  if (typeof run === "string") panel.say(`Saved. ${run}`, "good");
  else await panel.show(run, "monitor");
}

function editor(link, path, found, close) {
  const panel = runPanel();
  const problems = el("ul", { role: "status", class: "bad" });
  const shown = el("div", { role: "region", "aria-label": "Preview", tabindex: "0" });
  const inputs = LISTS.map(([name]) => el("textarea", { name, rows: 4, spellcheck: "false" }));
  inputs.forEach((input, at) => { input.value = (found.topics[LISTS[at][0]] ?? []).join("\n"); });
  const preview = el("button", { type: "button" }, "Preview");
  const saving = el("button", { type: "button", class: "go", disabled: true }, "Save");
  const cancel = el("button", { type: "button", onclick: close }, "Cancel");
  const kept = Object.keys(found.topics).filter((key) => !LISTS.some(([name]) => name === key));
  const asked = () => {
    const lists = LISTS.map(([name], at) => [name, linesOf(inputs[at].value)]).filter(([, lines]) => lines.length);
    return { ...Object.fromEntries(kept.map((key) => [key, found.topics[key]])), ...Object.fromEntries(lists) };
  };
  let turn = 0;
  let timer;
  const tell = (lines) => problems.replaceChildren(...lines.map((line) => el("li", {}, line)));

  // What was shown is of the text as it was: only that can be saved.
  function edited() {
    const mine = ++turn;
    saving.disabled = true;
    shown.replaceChildren();
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const failed = (error) => ({ problems: [error.message] });
      const answer = await askWith(`${path}/check`, { topics: asked() }).catch(failed);
      if (mine !== turn) return;
      tell(answer.problems);
      preview.disabled = answer.problems.length > 0;
    }, TYPING_MS);
  }
  preview.addEventListener("click", async () => {
    const mine = ++turn;
    const block = asked();
    panel.say("Asking both clusters…");
    try {
      const answer = await askWith(`${path}/preview`, { topics: block });
      if (mine !== turn) return;
      shown.replaceChildren(...previewPart(answer));
      saving.disabled = false;
      panel.say("This is what it would do.");
    } catch (error) {
      if (mine === turn) panel.say(error.message, "bad");
    }
  });
  const fields = el("fieldset", { "aria-label": "Topics" },
    ...LISTS.map(([, label, hint], at) => field(label, inputs[at], hint)), problems,
    el("p", { class: "actions" }, preview, saving));
  saving.addEventListener("click", async () => {
    turn += 1;
    fields.disabled = true;
    put(cancel, "Close");
    cancel.focus();
    try {
      await saveAndFollow(link, path, found.value, asked(), panel);
    } catch (error) {
      panel.say(error.message, "bad");
    }
  });
  inputs.forEach((input) => input.addEventListener("input", edited));
  const from = found.value === null ? "the links file; saving creates" : "";
  return [
    ...(found.problem ? [el("p", { class: "bad" }, `Now: ${found.problem}. Shown are the links file's topics.`)] : []),
    el("p", { class: "soft" }, `From ${from} Airflow Variable ${link.variable}.`
      + (kept.length ? ` Kept as they are: ${kept.join(", ")}.` : "")),
    fields, shown, panel.element, el("p", {}, cancel),
  ];
}

export async function editTopics(link) {
  const path = `links/${encodeURIComponent(link.link)}/topics`;
  let found;
  try {
    found = await ask(path);
  } catch (error) {
    openDialog(`Topics of link ${link.link}`, (close) =>
      [el("p", { class: "bad" }, error.message), el("button", { type: "button", onclick: close }, "Close")]);
    return;
  }
  openDialog(`Topics of link ${link.link}`, (close) => editor(link, path, found, close));
}

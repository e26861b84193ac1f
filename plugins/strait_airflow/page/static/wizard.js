// Failing over and rehearsing, each by a DAG: first looked at, then done.
import { field, openDialog, select } from "./dialog.js";
import { el } from "./dom.js";
import { actDialog, runPanel } from "./runs.js";

const check = (name, label) => el("label", { class: "check" }, el("input", { type: "checkbox", name }), label);
const given = (name, value, rest = {}) => el("input", { name, value, autocomplete: "off", ...rest });
const KINDS = [["planned", "planned: the source still answers"], ["unplanned", "unplanned: the source is lost"]];
const GROUPS_ALONE = "A wave moves topics, and these groups with them: name topics, too.";

const lines = (text) => String(text ?? "").split("\n").map((line) => line.trim()).filter(Boolean);

function expressions(name, found, rest = {}) {
  const area = el("textarea", { name, rows: 2, spellcheck: "false", ...rest });
  area.value = found.join("\n");
  return area;
}

// The part of a link that a wave moves, as `--topics` and `--groups` of the command line.
function waveFields(topics = [], groups = []) {
  const names = expressions("topics", topics, { placeholder: "all" });
  const members = expressions("groups", groups, { placeholder: "all with offsets in these topics" });
  const look = () => {
    const alone = lines(members.value).length > 0 && !lines(names.value).length;
    members.setCustomValidity(alone ? GROUPS_ALONE : "");
  };
  names.addEventListener("input", look);
  members.addEventListener("input", look);
  return [
    field("Topics", names, "Regular expressions for whole names on the source, one per line. The link copies all other "
      + "topics on."),
    field("Consumer groups", members, "Regular expressions, one per line. Other groups stay where they are."),
  ];
}

const waveOf = (values) => ({ topics: lines(values.topics), groups: lines(values.groups) });

// What belongs to another kind than the chosen one is disabled, so it is neither checked nor sent.
function conf(link, form, dryRun) {
  const values = Object.fromEntries(new FormData(form));
  const text = (name) => (values[name] ?? "").trim();
  return {
    link: link.link,
    kind: text("kind"),
    dry_run: dryRun,
    ...waveOf(values),
    fence: text("fence").split(/\s+/).filter(Boolean),
    quiet_seconds: Number(text("quiet_seconds") || 10),
    timeout_minutes: Number(text("timeout_minutes")),
    accept_inexact: "accept_inexact" in values,
    accept_tail: "accept_tail" in values,
    accept_transformed: "accept_transformed" in values,
    include_moved: "include_moved" in values,
    even_if_source_answers: "even_if_source_answers" in values,
    reason: text("reason"),
  };
}

const of = (kind, ...children) => el("fieldset", { "data-kind": kind }, ...children);

// One that was cut off goes on as what it is, with its topics and groups.
function choices(found) {
  const running = found.running ? found.newest_failover : { kind: "planned", wave_topics: [], wave_groups: [] };
  const kinds = select("kind", KINDS, running.kind);
  const wave = el("details", { open: running.wave_topics.length > 0 },
    el("summary", {}, "Only some topics (a wave)"), ...waveFields(running.wave_topics, running.wave_groups));
  const parts = [
    field("Kind", kinds),
    of("planned", el("p", {}, "Waits until producers have stopped and all records are copied, commits the groups' offsets, "
      + "stops the link. Until the link is stopped, an error takes back what was done.")),
    of("unplanned", el("p", {}, "Stops the link, asks the source for nothing, and names what is missing."), check("even_if_source_answers", "Fail over although the source answers")),
    of("planned", wave),
    field("Reason", given("reason", "", { maxlength: 200 }), "Kept in the report."),
    el("details", {}, el("summary", {}, "More settings"), ...moreChoices()),
  ];
  const made = el("div", {}, ...parts);
  const show = () => made.querySelectorAll("fieldset[data-kind]").forEach((one) => {
    one.disabled = one.hidden = one.dataset.kind !== kinds.value;
  });
  kinds.addEventListener("change", show);
  show();
  return made;
}

function moreChoices() {
  return [
    of("planned",
      field("Producers to fence", given("fence", "", { placeholder: "User:orders User:billing" }),
        "Principals that ACLs keep from writing to the source meanwhile, with spaces between them."),
      field("Quiet for, seconds", given("quiet_seconds", 10, { type: "number", min: 1, required: true }),
        "Producers have stopped if nothing was written to the source for this long.")),
    field("Give up a step after, minutes",
      given("timeout_minutes", 10, { type: "number", min: 1, max: 30, required: true })),
    of("planned",
      check("accept_inexact", "Fail over even if some groups would re-read or skip records"),
      check("accept_tail", "Fail over even if the link in the opposite direction is behind"),
      check("include_moved", "Also move groups that have consumed on the destination before")),
    check("accept_transformed", "Fail over even if a rule filters, changes or divides records on the way"),
  ];
}

// The real one can be begun only after a dry run of the same settings, by typing the link's name.
export function failoverWizard(link, found) {
  return openDialog(`Fail over link ${link.link}`, (close) => {
    const panel = runPanel();
    const form = el("form", {});
    const dry = el("button", { type: "submit", class: "go" }, "Dry run");
    const name = el("input", { id: "typed", autocomplete: "off", disabled: true });
    const real = el("button", { type: "button", class: "danger", disabled: true }, "Fail over now");
    const settings = el("fieldset", { "aria-label": "Settings" }, choices(found), el("p", {}, dry));
    const confirm = el("fieldset", { "aria-label": "Confirmation" },
      field(`Type ${link.link} to move its clients to the destination`, name),
      el("p", { class: "actions" }, el("button", { type: "button", onclick: close }, "Close"), real));
    form.append(settings, panel.element, confirm);
    const asked = () => JSON.stringify(conf(link, form, false));
    let looked = "";
    const update = () => {
      name.disabled = asked() !== looked;
      real.disabled = name.disabled || name.value !== link.link;
    };
    const locked = async (work) => {
      panel.element.scrollIntoView({ block: "center" });
      settings.disabled = name.disabled = real.disabled = true;
      try {
        return await work();
      } finally {
        settings.disabled = false;
      }
    };
    form.addEventListener("input", update);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const wanted = asked();
      const { ok, result } = await panelStart(panel, link, conf(link, form, true), locked);
      if (ok && !result.endsWith("all holds")) panel.say(result); // neither an error nor good news
      looked = ok ? wanted : "";
      update();
    });
    real.addEventListener("click", async () => {
      const { ok } = await panelStart(panel, link, conf(link, form, false), locked);
      looked = "";
      update();
      if (ok) settings.disabled = true;
    });
    const about = found.running ? [el("p", {}, "A failover of this link was cut off. It goes on where it stopped.")] : [];
    return [...about, form];
  });
}

const panelStart = (panel, link, wanted, locked) => locked(() => panel.start(link.dags.failover, wanted, "failover"));

export const rehearseDialog = (link) =>
  actDialog(`Rehearse a failover of ${link.link}`, "Rehearse", [
    el("p", {}, "Goes through all steps with consumer groups of other names. No client is touched."),
    field("Reason", given("reason", "", { maxlength: 200 }), "Kept in the report."),
    el("details", {}, el("summary", {}, "Only some topics (a wave)"), ...waveFields()),
  ], (values, panel) => panel.start(link.dags.failover,
    { link: link.link, kind: "rehearsal", reason: values.reason, ...waveOf(values) }, "failover"));

export const unfenceDialog = (link) =>
  actDialog(`Remove the fence of ${link.link}`, "Remove the fence", [
    el("p", {}, "Removes the ACLs of the last failover, so that producers may write to the source again. A failover "
      + "that has not stopped the link yet is given up."),
    field("Only of topics", expressions("topics", [], { placeholder: "all" }),
      "Regular expressions for whole names on the source, one per line."),
  ], (values, panel) => panel.start(link.dags.failover,
    { link: link.link, unfence: true, dry_run: false, topics: lines(values.topics) }, "failover"));

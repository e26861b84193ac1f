// Failing over and rehearsing, each by a DAG: first looked at, then done.
import { field, openDialog, select } from "./dialog.js";
import { el } from "./dom.js";
import { actDialog, runPanel } from "./runs.js";

const check = (name, label) => el("label", { class: "check" }, el("input", { type: "checkbox", name }), label);
const given = (name, value, rest = {}) => el("input", { name, value, autocomplete: "off", ...rest });
const KINDS = [["planned", "planned: the source still answers"], ["unplanned", "unplanned: the source is lost"]];

function conf(link, form, dryRun) {
  const values = new FormData(form);
  const text = (name) => String(values.get(name) ?? "").trim();
  return {
    link: link.link,
    kind: text("kind"),
    dry_run: dryRun,
    fence: text("fence").split(/\s+/).filter(Boolean),
    quiet_seconds: Number(text("quiet_seconds")),
    timeout_minutes: Number(text("timeout_minutes")),
    accept_inexact: values.has("accept_inexact"),
    accept_tail: values.has("accept_tail"),
    include_moved: values.has("include_moved"),
    even_if_source_answers: values.has("even_if_source_answers"),
    reason: text("reason"),
  };
}

// One that was cut off goes on as what it is.
function choices(found) {
  return [
    field("Kind", select("kind", KINDS, found.running ? found.newest_failover.kind : "planned")),
    field("Reason", given("reason", "", { maxlength: 200 }), "Kept in the report."),
    el("details", {}, el("summary", {}, "More settings"), ...moreChoices()),
  ];
}

function moreChoices() {
  return [
    field("Producers to fence", given("fence", "", { placeholder: "User:orders User:billing" }),
      "Principals that ACLs keep from writing to the source meanwhile, with spaces between them."),
    field("Quiet for, seconds", given("quiet_seconds", 10, { type: "number", min: 1, required: true }),
      "So long nothing must be written to the source."),
    field("Give up a step after, minutes",
      given("timeout_minutes", 10, { type: "number", min: 1, max: 30, required: true })),
    check("accept_inexact", "Although groups would not continue exactly"),
    check("accept_tail", "Although the reverse link is behind"),
    check("include_moved", "Also groups that have consumed on the destination"),
    check("even_if_source_answers", "Unplanned, although the source answers"),
  ];
}

// The real one can be begun only after a dry run of the same settings, by typing the link's name.
export function failoverWizard(link, found) {
  return openDialog(`Fail over link ${link.link}`, (close) => {
    const panel = runPanel();
    const form = el("form", {});
    const dry = el("button", { type: "submit", class: "go" }, "Dry run");
    const name = el("input", { id: "typed", autocomplete: "off", disabled: true });
    const real = el("button", { type: "button", class: "go", disabled: true }, "Fail over now");
    const settings = el("fieldset", { "aria-label": "Settings" }, ...choices(found), el("p", {}, dry));
    const confirm = el("fieldset", { "aria-label": "Confirmation" },
      field(`Type ${link.link} to move its clients to the destination`, name), el("p", {}, real));
    form.append(settings, panel.element, confirm);
    const asked = () => JSON.stringify(conf(link, form, false));
    let looked = "";
    const update = () => {
      name.disabled = asked() !== looked;
      real.disabled = name.disabled || name.value !== link.link;
    };
    const locked = async (work) => {
      panel.element.scrollIntoView({ block: "center" });
      settings.disabled = confirm.disabled = true;
      try {
        return await work();
      } finally {
        settings.disabled = confirm.disabled = false;
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
    const about = found.running
      ? "A failover of this link was cut off. It goes on where it stopped."
      : "Waits until producers have stopped and all records are copied, commits the groups' offsets, stops the link. "
        + "Until the link is stopped, an error takes back what was done.";
    return [el("p", {}, about), form, el("p", {}, el("button", { type: "button", onclick: close }, "Close"))];
  });
}

const panelStart = (panel, link, wanted, locked) => locked(() => panel.start(link.dags.failover, wanted, "failover"));

export const rehearseDialog = (link) =>
  actDialog(`Rehearse a failover of ${link.link}`, "Rehearse", [
    el("p", {}, "Goes through all steps with consumer groups of other names. No client is touched."),
    field("Reason", given("reason", "", { maxlength: 200 }), "Kept in the report."),
  ], ({ reason }, panel) =>
    panel.start(link.dags.failover, { link: link.link, kind: "rehearsal", reason }, "failover"));

export const unfenceDialog = (link) =>
  actDialog(`Remove the fence of ${link.link}`, "Remove the fence", [
    el("p", {}, "Removes the ACLs of the last failover, so that producers may write to the source again. A failover "
      + "that has not stopped the link yet is given up."),
  ], (_, panel) => panel.start(link.dags.failover, { link: link.link, unfence: true, dry_run: false }, "failover"));

// Settling what the destination refused: writing it where it belongs, or letting it go.
import { field, opens, select } from "./dialog.js";
import { el, plural } from "./dom.js";
import { actDialog } from "./runs.js";

const ABOUT = {
  replay: "Writes the records unchanged, each once. Into the copy itself only if its rule lets others write there; "
    + "else name another topic.",
  drop: "Discards the records. They stay in the quarantine topic, marked, and are not counted any more.",
};

function settleDialog(link, action) {
  const topics = Object.entries(link.quarantine).map(([topic, count]) => [topic, `${topic}: ${plural(count, "record")}`]);
  const title = action === "replay" ? "Replay" : "Drop";
  const into = field("Write into", el("input", { name: "to", maxlength: 249, autocomplete: "off" }),
    "A topic of the destination; empty: where the records were to go.");
  const only = field("First", select("dry_run", [["yes", "only show what would be done"], ["no", `${action} them`]]));
  return actDialog(`${title}: quarantine of link ${link.link}`, "Go", [
    el("p", {}, ABOUT[action]),
    field("Records of", select("topic", [["", "all topics"], ...topics])),
    ...(action === "replay" ? [into] : []),
    only,
  ], async ({ topic, to = "", dry_run: dry }, panel) => {
    const asked = { link: link.link, action, topic, to, dry_run: dry === "yes" };
    const { ok } = await panel.start(link.dags.quarantine, asked);
    return { ok: ok && !asked.dry_run };
  }, action === "drop" ? "danger" : "go");
}

export function quarantineButtons(link) {
  if (!link.quarantined) return [];
  const button = (action, text) =>
    opens(action, text, () => settleDialog(link, action), link.may.quarantine);
  return [button("replay", "Replay quarantined"), button("drop", "Drop quarantined")];
}

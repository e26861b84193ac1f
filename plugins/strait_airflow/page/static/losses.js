// What a link lost: records that are not on the destination, what was done about it, and who has taken note of it.
import { field, opens } from "./dialog.js";
import { address, ago, cell, el, exact, prose, table } from "./dom.js";
import { actDialog } from "./runs.js";

const HEADS = ["When", "Partition", "Offsets", "Cause", "Action", "Acknowledged"];

export const noticed = ({ acknowledged: said }) => (said === null ? el("strong", { class: "bad" }, "new")
  : el("span", {}, `by ${said.by} `, ago(said.at_ms), said.reason ? `: ${said.reason}` : ""));

// The losses that are shown now, and none that comes meanwhile.
function acknowledgeDialog(link) {
  return actDialog(`Acknowledge losses: link ${link.link}`, "Acknowledge", [
    el("p", {}, prose("They stay in the loss log, and no longer stand out here and in `strait losses --new`. Nothing is "
      + "copied or changed by this.")),
    field("Reason", el("input", { name: "reason", maxlength: 200, autocomplete: "off" }), "Kept with them."),
  ], ({ reason = "" }, panel) => panel.start(link.dags.pause,
    { link: link.link, action: "acknowledge", what: "", reason, count: link.losses }));
}

function lossRow(link, loss) {
  const place = `${loss.topic}-${loss.partition}`;
  return el("tr", {},
    cell(ago(loss.at_ms)),
    cell(el("a", { href: address("link", link, "partition", loss.topic, loss.partition) }, place), "name title"),
    cell(`${exact(loss.from_offset)} to ${exact(loss.to_offset)} of the ${loss.side}`),
    cell(el("code", {}, loss.cause)), cell(el("code", {}, loss.action)), cell(noticed(loss), "name"));
}

export function lossesPart(link) {
  const rows = (link.losses_newest || []).map((loss) => lossRow(link.link, loss));
  const button = link.losses_new
    ? [el("p", { class: "actions" }, opens("acknowledge", "Acknowledge", () => acknowledgeDialog(link), link.may.pause))] : [];
  const more = link.losses > rows.length
    ? [el("p", { class: "soft" }, "The newest ", exact(rows.length), " of ", exact(link.losses), ". All: ",
      el("code", {}, `strait losses ${link.link}`))] : [];
  return [el("div", { class: "top" }, el("h3", {}, "Losses"), ...button), ...more, table("Losses", HEADS, rows, "None.")];
}

// A link's slots, and what it lost.
import { address, ago, badge, cell, count, el, exact, millis, seconds, table } from "./dom.js";

const SLOT_HEADS = ["Slot", "State", "Last report", "Host", "Records/s", "Latency p99", "Application"];
const LOSS_HEADS = ["When", "Partition", "Offsets", "Cause", "Action"];

export function slotsPart(link) {
  const rows = (link.slots || []).map((slot) => el("tr", {},
    cell(`${slot.group} ${slot.slot}`, "title"),
    cell(badge(slot.badge), "plain"),
    cell(slot.age_ms === null ? el("span", { title: slot.silence }, "none") : `${seconds(slot.age_ms / 1000)} ago`),
    cell(slot.host || "–", "name"),
    cell(slot.silent ? "–" : count(slot.records_per_second), "number"),
    cell(slot.silent ? "–" : millis(slot.latency_ms_p99), "number"),
    cell(slot.application || "–", "name")));
  return [el("h3", {}, "Slots"), table("Slots", SLOT_HEADS, rows, "None yet.")];
}

function lossRow(link, loss) {
  const place = `${loss.topic}-${loss.partition}`;
  return el("tr", {},
    cell(ago(loss.at_ms)),
    cell(el("a", { href: address("link", link, "partition", loss.topic, loss.partition) }, place), "name"),
    cell(`${exact(loss.from_offset)} to ${exact(loss.to_offset)} of the ${loss.side}`),
    cell(loss.cause), cell(loss.action));
}

export function lossesPart(link) {
  const rows = (link.losses_newest || []).map((loss) => lossRow(link.link, loss));
  return [el("h3", {}, "Losses"), table("Losses", LOSS_HEADS, rows, "None.")];
}

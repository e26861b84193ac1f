// A link's slots, and what it lost.
import { address, cell, el, millis, number, table, when } from "./dom.js";

const SLOT_HEADS = ["Slot", "Application", "Host", "State", "Records/s", "Latency p99"];
const LOSS_HEADS = ["When", "Partition", "Offsets", "Cause", "Action"];

export function slotsPart(link) {
  const rows = (link.slots || []).map((slot) => el("tr", {},
    cell(`${slot.group} ${slot.slot}`),
    cell(slot.application || "–", "name"),
    cell(slot.host || "–", "name"),
    cell(slot.silent ? el("span", { class: "bad" }, "silent") : "reports"),
    cell(number(slot.records_per_second), "number"),
    cell(millis(slot.latency_ms_p99), "number")));
  return [el("h3", {}, "Slots"), table("Slots", SLOT_HEADS, rows, "None yet.")];
}

function lossRow(link, loss) {
  const place = `${loss.topic}-${loss.partition}`;
  return el("tr", {},
    cell(when(loss.at_ms)),
    cell(el("a", { href: address("link", link, "partition", loss.topic, loss.partition) }, place), "name"),
    cell(`${number(loss.from_offset)} to ${number(loss.to_offset)} of the ${loss.side}`),
    cell(loss.cause), cell(loss.action));
}

export function lossesPart(link) {
  const rows = (link.losses_newest || []).map((loss) => lossRow(link.link, loss));
  return [el("h3", {}, "Losses"), table("Losses", LOSS_HEADS, rows, "None.")];
}

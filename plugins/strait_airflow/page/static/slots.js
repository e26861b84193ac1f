// A link's slots: whether each reports, from where and how fast.
import { badge, cell, el, millis, perSecond, seconds, table } from "./dom.js";
import { none } from "./tabs.js";

const SLOT_HEADS = ["Slot", "State", "Last report", "Host", "Records/s", "Latency p99", "Application"];

export function slotsPart(link) {
  const rows = (link.slots || []).map((slot) => el("tr", {},
    cell(`${slot.group} ${slot.slot}`, "title"),
    cell(badge(slot.badge), "plain"),
    cell(slot.age_ms === null ? el("span", { title: slot.silence }, "none") : `${seconds(slot.age_ms / 1000)} ago`),
    cell(slot.host || "–", "name"),
    cell(slot.silent ? "–" : perSecond(slot.records_per_second), "number"),
    cell(slot.silent ? "–" : millis(slot.latency_ms_p99), "number"),
    cell(slot.application || "–", "name")));
  return [el("h3", {}, "Slots"), table("Slots", SLOT_HEADS, rows, none(link, "None yet."))];
}

// The last hours of links. It changes slowly, so it is asked for once a minute.
import { chart, sparkline } from "./chart.js";
import { ask, bytes, el, millis, number, seconds } from "./dom.js";
import { listing } from "./paging.js";

const EVERY_MS = 60_000;
const SOON_MS = 2_000; // while the past is still being read
const kept = new Map();

async function newest(path, isWhole) {
  const before = kept.get(path);
  if (before && Date.now() < before.due) return before.found;
  const found = await ask(path);
  kept.set(path, { found, due: Date.now() + (isWhole(found) ? EVERY_MS : SOON_MS) });
  return found;
}

// Gives for each link the drawing of its records per second.
export async function sparklines() {
  const { links } = await newest("history", (found) => Object.values(found.links).every((points) => points.length));
  return (link) => sparkline("Records/s in the last hours", links[link] ?? [], number);
}

const RANGES = [[1, "1 h"], [6, "6 h"], [24, "24 h"]];
const list = listing("charts-", { hours: 24 });

function ranges(show) {
  const { hours } = list.wanted;
  return el("p", { class: "summary", role: "group", "aria-label": "Time range" }, ...RANGES.map(([value, text]) =>
    el("button", { type: "button", id: `charts-${value}`, class: "part", "aria-pressed": String(value === hours),
      onclick: () => list.want({ hours: value }, show) }, text)));
}

export async function chartsPart(link, show) {
  const { hours } = list.wanted;
  const found = await newest(`links/${encodeURIComponent(link)}/history?hours=${hours}`, ({ looking }) => !looking);
  const head = el("div", {}, el("h3", {}, "History"), ranges(show));
  if (!found.samples.length) {
    const none = found.looking ? "The past is being read …" : "No slot has reported for a minute yet.";
    const text = found.error || none;
    return [head, el("p", { role: "status", class: found.error ? "bad" : "soft" }, text)];
  }
  const of = (name) => found.samples.map((sample) => [sample.at_ms, sample[name]]);
  const what = [
    ["rate", "Records/s", of("records_per_second"), number],
    ["bytes", "Bytes/s, compressed", of("bytes_per_second"), bytes],
    ["lag", "Lag, records", of("lag_records"), number],
    ["lag-seconds", "Lag", of("lag_seconds"), seconds],
    ["latency", "Latency p99", of("latency_ms_p99"), millis],
  ];
  const text = found.error || (found.looking ? "The past is being read …" : "");
  const note = text ? [el("p", { role: "status", class: found.error ? "bad" : "soft" }, text)] : [];
  const charts = what.map(([id, title, points, format]) => chart(id, title, points, format));
  return [head, ...note, el("div", { class: "charts" }, ...charts)];
}

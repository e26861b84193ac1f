// The last hours of links. It changes slowly, so it is asked for once a minute.
import { charts, eventsPart, sparkline } from "./chart.js";
import { ask, bytes, perSecond, roundBytes, el, millis, number, seconds, short } from "./dom.js";
import { room } from "./frame.js";
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

const RANGES = [[1, "1 h"], [6, "6 h"], [24, "24 h"], [720, "30 d"]];
const list = listing("charts-", { hours: 24 });

function ranges(show) {
  const { hours } = list.wanted;
  return el("p", { class: "summary", role: "group", "aria-label": "Time range" }, ...RANGES.map(([value, text]) =>
    el("button", { type: "button", id: `charts-${value}`, class: "part", "aria-pressed": String(value === hours),
      onclick: () => list.want({ hours: value }, show) }, text)));
}

// Whether the newest sample is so old that what was since is not known.
function sinceUnknown(samples, now) {
  const last = samples.at(-1).at_ms;
  const step = samples.length > 1 ? last - samples.at(-2).at_ms : 0;
  return now - last > Math.max(3 * EVERY_MS, 2 * step);
}

export async function chartsPart(link, show) {
  const { hours } = list.wanted;
  const found = await newest(`links/${encodeURIComponent(link)}/history?hours=${hours}`, ({ looking }) => !looking);
  const head = el("div", { class: "top" }, el("h3", {}, "History"), ranges(show));
  if (!found.samples.length) {
    const none = found.looking ? "The past is being read …" : "No slot has reported for a minute yet.";
    const text = found.error || none;
    return [head, el("p", { role: "status", class: found.error ? "bad" : "soft" }, text)];
  }
  const late = sinceUnknown(found.samples, found.now_ms) ? [[found.now_ms, null]] : [];
  const of = (name, title = "", kind = "") => ({ name: title, kind,
    points: [...found.samples.map((sample) => [sample.at_ms, sample[name]]), ...late] });
  const what = [
    { id: "rate", title: "Records/s", series: [of("records_per_second")], read: (value) => perSecond(value, number), tick: short },
    { id: "bytes", title: "Bytes/s, compressed", series: [of("bytes_per_second")], read: bytes, tick: roundBytes },
    { id: "lag", title: "Lag, records", series: [of("lag_records")], read: number, tick: short },
    { id: "lag-seconds", title: "Lag, time", series: [of("lag_seconds")], read: seconds, tick: seconds, isTime: true },
    { id: "latency", title: "Latency", series: [of("latency_ms_p99", "p99"), of("latency_ms_p50", "p50", "second")],
      read: millis, tick: millis },
  ];
  const text = found.error || (found.looking ? "The past is being read …" : "");
  const note = text ? [el("p", { role: "status", class: found.error ? "bad" : "soft" }, text)] : [];
  return [head, ...note, charts(what, room(), { now: found.now_ms, events: found.events }), eventsPart(found.events)];
}

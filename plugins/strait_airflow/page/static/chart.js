// Charts over time, as SVG, each with its figures as a table for those who cannot see it.
import { cell, el, exact, put, svg, table, when } from "./dom.js";
import { ticks, times } from "./scale.js";

const TALL = 132;
const [TOP, RIGHT, BOTTOM, LEFT] = [14, 8, 18, 56];
const LABEL = 76; // for a time below the chart
const SIGNS = { plan: "P", pause: "II", restart: "R", loss: "L", failover: "F" };

const clock = (ms) => when(ms).slice(11, 16);
const day = (ms) => when(ms).slice(5, 10);
const timeLabel = (ms) => (ms % 86_400_000 ? clock(ms) : day(ms));
export const moment = (ms) => `${day(ms)} ${clock(ms)} UTC`;

const known = (points) => points.filter(([, value]) => value !== null);

// Points are [milliseconds, value], in order; a value of null is a gap.
function line(points, x, y) {
  return points.map(([ms, value], at) => {
    if (value === null) return "";
    const begins = at === 0 || points[at - 1][1] === null;
    const alone = begins && (points[at + 1]?.[1] ?? null) === null; // a line without a length is not drawn
    return `${begins ? "M" : "L"}${x(ms).toFixed(1)} ${y(value).toFixed(1)}${alone ? "h1" : ""}`;
  }).join("");
}

// Few figures are points of time, between which a line says little.
const FEW = 60;
function dots(points, { x, y }) {
  const few = known(points);
  return few.length > FEW ? [] : few.map(([ms, value]) => svg("circle", { cx: x(ms), cy: y(value), r: 2.5 }));
}

// Stretches of which nothing is known, from the last figure before each to the first one behind it.
export function gaps(points) {
  const found = [];
  points.forEach(([ms, value], at) => {
    if (value !== null) return;
    const begins = at === 0 || points[at - 1][1] !== null;
    if (begins) found.push([at ? points[at - 1][0] : ms, ms]);
    found.at(-1)[1] = points[at + 1]?.[0] ?? ms;
  });
  return found;
}

// What was before the first figure is no gap.
const begun = (points) => points.slice(Math.max(0, points.findIndex(([, value]) => value !== null)));

function summary(series, read) {
  const said = series.map(({ name, points }) => {
    const values = known(points).map(([, value]) => value);
    const newest = points.at(-1)?.[1] ?? null;
    if (!values.length) return "";
    const now = newest === null ? "unknown" : read(newest);
    const [least, most] = [read(Math.min(...values)), read(Math.max(...values))];
    return `${name ? `${name} ` : ""}${now} now${least === most ? "" : `, ${least} to ${most}`}`;
  });
  return said.filter(Boolean).join("; ") || "nothing is known yet";
}

// The moment under the pointer is marked in all charts, and stays so when they are drawn anew.
let pointed = null;
const marks = new Set();
function point(ms) {
  pointed = ms;
  for (const mark of [...marks]) {
    if (mark.element.isConnected) mark.show();
    else marks.delete(mark);
  }
}

function nearest(points, ms) {
  return points.reduce((best, one) => (Math.abs(one[0] - ms) < Math.abs(best[0] - ms) ? one : best));
}

// The last event that happened so near to the pointer that it means that one.
const near = (events, ms, reach) => events.findLast((one) => Math.abs(one.at_ms - ms) <= reach);

function pointing(drawing, caption, { title, series, read }, scale, events, text) {
  const pointer = svg("line", { class: "pointed", y1: TOP, y2: TALL - BOTTOM, visibility: "hidden" });
  drawing.append(pointer);
  const show = () => {
    pointer.setAttribute("visibility", pointed === null ? "hidden" : "visible");
    if (pointed === null) { put(caption, text); return; }
    const found = series.filter(({ points }) => points.length).map(({ name, points }) => [name, nearest(points, pointed)]);
    const ms = found.length ? found[0][1][0] : pointed;
    for (const end of ["x1", "x2"]) pointer.setAttribute(end, Math.min(Math.max(scale.x(ms), LEFT), scale.right));
    const said = found.map(([name, [, value]]) => `${name ? `${name} ` : ""}${value === null ? "unknown" : read(value)}`);
    const event = near(events, pointed, (scale.to - scale.from) / 60);
    put(caption, `${title}: ${said.join(", ")} at ${moment(ms)}${event ? `; ${event.text}` : ""}`);
  };
  drawing.addEventListener("pointermove", (event) => {
    const { left } = drawing.getBoundingClientRect();
    point(scale.ms(event.clientX - left));
  });
  drawing.addEventListener("pointerleave", () => point(null));
  marks.add({ element: drawing, show });
  show();
}

function axes(scale, { tick, isTime }) {
  const across = scale.ticks.flatMap((value) => {
    const y = scale.y(value);
    return [svg("line", { class: "grid", x1: LEFT, x2: scale.right, y1: y, y2: y }),
      svg("text", { class: "axis left", x: LEFT - 6, y: y + 4 }, isTime && !value ? "0" : tick(value))];
  });
  const along = times(scale.from, scale.to, Math.max(2, Math.floor((scale.right - LEFT) / LABEL))).flatMap((ms) => [
    svg("line", { class: "grid", x1: scale.x(ms), x2: scale.x(ms), y1: TALL - BOTTOM, y2: TALL - BOTTOM + 4 }),
    svg("text", { class: "axis", x: Math.min(Math.max(scale.x(ms), LEFT), scale.right - 14), y: TALL - 2 }, timeLabel(ms))]);
  return [...across, ...along];
}

const eventLines = (events, scale) => events.flatMap((one) => [
  svg("line", { class: `event ${one.kind}`, x1: scale.x(one.at_ms), x2: scale.x(one.at_ms), y1: TOP, y2: TALL - BOTTOM }),
  svg("text", { class: `event ${one.kind}`, x: scale.x(one.at_ms), y: TOP - 3 }, SIGNS[one.kind],
    svg("title", {}, `${moment(one.at_ms)}: ${one.text}`))]);

function hatched(id, points, scale) {
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("line", { x1: 0, x2: 0, y1: 0, y2: 6 }));
  const found = gaps(points).map(([from, to]) => svg("rect", { class: "gap", x: scale.x(from), y: TOP,
    width: Math.max(1, scale.x(to) - scale.x(from)), height: TALL - TOP - BOTTOM, fill: `url(#${id})` },
  svg("title", {}, "Nothing is known of this time.")));
  return found.length ? [svg("defs", {}, pattern), ...found] : [];
}

function scaleOf({ series, isTime }, { from, to, width }) {
  const all = series.flatMap(({ points }) => known(points).map(([, value]) => value));
  const steps = ticks(Math.max(...all, 0), isTime);
  const right = width - RIGHT;
  return {
    from, to, right, ticks: steps,
    x: (ms) => LEFT + ((ms - from) / (to - from || 1)) * (right - LEFT),
    ms: (x) => from + ((x - LEFT) / (right - LEFT)) * (to - from),
    y: (value) => TALL - BOTTOM - (value / steps.at(-1)) * (TALL - TOP - BOTTOM),
  };
}

const unfolded = new Set(); // the figures that somebody reads: of others, no cells are made every two seconds

function figures(id, title, series, read) {
  const moments = [...new Set(series.flatMap(({ points }) => known(points).map(([ms]) => ms)))].sort((a, b) => b - a);
  const values = series.map(({ points }) => new Map(points));
  const rows = () => moments.map((ms) => el("tr", {}, cell(when(ms)), ...values.map((each) => {
    const value = each.get(ms) ?? null;
    return cell(value === null ? "–" : read(value), "number");
  })));
  const heads = ["When", ...series.map(({ name }) => name || title)];
  const made = el("details", { id: `figures-${id}` }, el("summary", {}, "Figures"));
  const fill = () => { if (made.children.length === 1) made.append(table(`${title}, figures`, heads, rows(), "")); };
  made.addEventListener("toggle", () => {
    if (made.open) { unfolded.add(id); fill(); } else unfolded.delete(id);
  });
  if (unfolded.has(id)) fill();
  return made;
}

// `one`: { id, title, series, read, tick, isTime }; `view`: { from, to, width, events }, the same for charts beside each other.
function chart(one, view) {
  const { id, title, series, read } = one;
  const text = `${title}: ${summary(series, read)}`;
  const head = el("figcaption", {}, text);
  if (!series.some(({ points }) => known(points).length)) return el("figure", {}, head);
  const scale = scaleOf(one, view);
  const lines = series.flatMap(({ points, kind = "" }) => [
    svg("path", { class: kind, d: line(points, scale.x, scale.y) }), ...dots(points, scale)]);
  const drawing = svg("svg", { width: view.width, height: TALL, class: "chart", role: "img", "aria-label": text },
    ...axes(scale, one), ...hatched(`hatch-${id}`, series[0].points, scale), ...lines, ...eventLines(view.events, scale));
  pointing(drawing, head, one, scale, view.events, text);
  return el("figure", {}, head, drawing, figures(id, title, series, read));
}

const [LEAST, APART] = [400, 24];
const AROUND = 3_600_000; // a single moment

// Charts beside each other, over the same time. `room`: width for all; `now`: end of the time, if that is not the last point.
export function charts(all, room, { now = null, events = [] } = {}) {
  const trimmed = all.map((one) => ({ ...one, series: one.series.map((each) => ({ ...each, points: begun(each.points) })) }));
  const moments = trimmed.flatMap(({ series }) => series.flatMap(({ points }) => known(points).length ? points.map(([ms]) => ms) : []));
  if (!moments.length) return el("div", { class: "charts" }, ...trimmed.map((one) => chart(one, {})));
  const first = moments.reduce((least, ms) => Math.min(least, ms));
  const last = now ?? moments.reduce((most, ms) => Math.max(most, ms));
  const [from, to] = first < last ? [first, last] : [first - AROUND, first + AROUND];
  const columns = Math.max(1, Math.floor((room + APART) / (LEAST + APART)));
  const width = Math.floor((room - (columns - 1) * APART) / columns);
  const within = events.filter((one) => one.at_ms >= from && one.at_ms <= to);
  return el("div", { class: "charts" }, ...trimmed.map((one) => chart(one, { from, to, width, events: within })));
}

// A small one within a row, of which the summary is the name.
export function sparkline(title, all, read) {
  const points = begun(all);
  const values = known(points).map(([, value]) => value);
  if (!values.length) return el("span", { class: "soft" }, "–");
  const [from, to] = [points[0][0], points.at(-1)[0]];
  const most = Math.max(...values) || 1;
  const [x, y] = [(ms) => 2 + ((ms - from) / (to - from || 1)) * 96, (value) => 22 - (value / most) * 20];
  return svg("svg", { class: "spark", viewBox: "0 0 100 24", role: "img", preserveAspectRatio: "none",
    "aria-label": `${title}: ${summary([{ name: "", points }], read)}` }, svg("path", { d: line(points, x, y) }));
}

// What the marks in the charts mean, newest first, for those who cannot point at them.
export function eventsPart(events) {
  const rows = [...events].reverse().map((one) => el("tr", {}, cell(moment(one.at_ms), "title"),
    cell(`${SIGNS[one.kind]} ${one.kind}`, "plain"), cell(one.text, "name why")));
  return el("details", { id: "events" }, el("summary", {}, `Events in this time: ${exact(rows.length)}`),
    table("Events", ["When", "Kind", "What"], rows, "None."));
}

// Charts over time, as SVG, each with its figures as a table for those who cannot see it.
import { cell, el, put, svg, table, when } from "./dom.js";

const [WIDTH, HEIGHT, EDGE] = [600, 140, 4];

const places = (points, width, height) => {
  const values = points.map(([, value]) => value).filter((value) => value !== null);
  const [from, to] = [points[0][0], points.at(-1)[0]]; // gaps at either end are shown, too
  const most = Math.max(...values, 0) || 1;
  const x = (ms) => EDGE + ((ms - from) / (to - from || 1)) * (width - 2 * EDGE);
  const y = (value) => height - EDGE - (value / most) * (height - 2 * EDGE);
  return { from, to, most, x, y };
};

// Points are [milliseconds, value], in order; a value of null is a gap.
function paths(points, { x, y }) {
  const known = points.filter(([, value]) => value !== null);
  const drawn = points.map(([ms, value], at) => {
    if (value === null) return "";
    const begins = at === 0 || points[at - 1][1] === null;
    return `${begins ? "M" : "L"}${x(ms).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
  const dots = known.length > 60 ? []
    : known.map(([ms, value]) => svg("circle", { cx: x(ms).toFixed(1), cy: y(value).toFixed(1), r: 2 }));
  return [svg("path", { d: drawn }), ...dots];
}

// Stretches of which nothing is known, from the last figure before each to the first one behind it.
function gaps(points, { x }) {
  const found = [];
  points.forEach(([ms, value], at) => {
    if (value !== null) return;
    const begins = at === 0 || points[at - 1][1] !== null;
    if (begins) found.push([at ? points[at - 1][0] : ms, ms]);
    found.at(-1)[1] = points[at + 1]?.[0] ?? ms;
  });
  return found.map(([from, to]) =>
    svg("rect", { class: "gap", x: x(from), y: 0, width: Math.max(1, x(to) - x(from)), height: HEIGHT }));
}

function summary(points, format) {
  const values = points.map(([, value]) => value).filter((value) => value !== null);
  if (!values.length) return "nothing is known yet";
  return `${format(values.at(-1))} now, ${format(Math.min(...values))} to ${format(Math.max(...values))}`;
}

// What was before the first figure is no gap.
const begun = (points) => points.slice(Math.max(0, points.findIndex(([, value]) => value !== null)));

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

const clock = (ms) => when(ms).slice(11, 16);
const day = (ms) => when(ms).slice(5, 10);
// A time below a chart, with the day if it is another one at the chart's end.
const time = (ms, other) => (day(ms) === day(other) ? clock(ms) : `${day(ms)} ${clock(ms)}`);

function pointing(drawing, caption, points, place, format, title, text) {
  const line = svg("line", { class: "pointed", y1: 0, y2: HEIGHT, visibility: "hidden" });
  drawing.append(line);
  const show = () => {
    const [ms, value] = pointed === null ? [null, null] : nearest(points, pointed);
    line.setAttribute("visibility", ms === null ? "hidden" : "visible");
    if (ms !== null) for (const end of ["x1", "x2"]) line.setAttribute(end, place.x(ms));
    put(caption, ms === null ? `${title}: ${text}` : `${title}: ${format(value)} at ${day(ms)} ${clock(ms)}`);
  };
  drawing.addEventListener("pointermove", (event) => {
    const { left, width } = drawing.getBoundingClientRect();
    point(place.from + ((event.clientX - left) / width) * (place.to - place.from));
  });
  drawing.addEventListener("pointerleave", () => point(null));
  marks.add({ element: drawing, show });
  show();
}

export function chart(id, title, all, format) {
  const points = begun(all);
  const known = points.filter(([, value]) => value !== null);
  const text = summary(points, format);
  const head = el("figcaption", {}, `${title}: ${text}`);
  if (!known.length) return el("figure", {}, head);
  const place = places(points, WIDTH, HEIGHT);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${text}`,
    preserveAspectRatio: "none" }, ...gaps(points, place), ...paths(points, place));
  pointing(drawing, head, points, place, format, title, text);
  const middle = (place.from + place.to) / 2;
  const times = [time(place.from, place.to), time(middle, place.to), `${clock(place.to)} UTC`];
  const axes = el("div", { class: "plot" }, el("div", { class: "most" }, format(place.most)), drawing,
    el("div", { class: "times" }, ...times.map((text) => el("span", {}, text))));
  const rows = known.map(([ms, value]) => el("tr", {}, cell(when(ms)), cell(format(value), "number")));
  const figures = el("details", { id: `figures-${id}` }, el("summary", {}, "Figures"),
    table(`${title}, figures`, ["When", title], rows.reverse(), ""));
  return el("figure", {}, head, axes, figures);
}

// A small one within a row, of which the summary is the name.
export function sparkline(title, all, format) {
  const points = begun(all);
  if (!points.some(([, value]) => value !== null)) return el("span", { class: "soft" }, "–");
  return svg("svg", { class: "spark", viewBox: "0 0 100 24", role: "img", preserveAspectRatio: "none",
    "aria-label": `${title}: ${summary(points, format)}` }, ...paths(points, places(points, 100, 24)).slice(0, 1));
}

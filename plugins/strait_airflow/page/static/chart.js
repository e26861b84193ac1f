// Charts over time, as SVG, each with its figures as a table for those who cannot see it.
import { cell, el, svg, table, when } from "./dom.js";

const [WIDTH, HEIGHT, EDGE] = [600, 140, 4];

// Points are [milliseconds, value], in order; a value of null is a gap.
function paths(points, width, height) {
  const known = points.filter(([, value]) => value !== null);
  const [from, to] = [points[0][0], points.at(-1)[0]]; // gaps at either end are shown, too
  const most = Math.max(...known.map(([, value]) => value), 0) || 1;
  const x = (ms) => (EDGE + ((ms - from) / (to - from || 1)) * (width - 2 * EDGE)).toFixed(1);
  const y = (value) => (height - EDGE - (value / most) * (height - 2 * EDGE)).toFixed(1);
  const drawn = points.map(([ms, value], at) => {
    if (value === null) return "";
    const begins = at === 0 || points[at - 1][1] === null;
    return `${begins ? "M" : "L"}${x(ms)} ${y(value)}`;
  }).join("");
  const dots = known.length > 60 ? [] : known.map(([ms, value]) => svg("circle", { cx: x(ms), cy: y(value), r: 2 }));
  return [svg("path", { d: drawn }), ...dots];
}

function summary(points, format) {
  const values = points.map(([, value]) => value).filter((value) => value !== null);
  if (!values.length) return "nothing is known yet";
  return `${format(values.at(-1))} now, ${format(Math.min(...values))} to ${format(Math.max(...values))}`;
}

// What was before the first figure is no gap.
const begun = (points) => points.slice(Math.max(0, points.findIndex(([, value]) => value !== null)));

export function chart(id, title, all, format) {
  const points = begun(all);
  const known = points.filter(([, value]) => value !== null);
  const text = summary(points, format);
  const head = el("figcaption", {}, `${title}: ${text}`);
  if (!known.length) return el("figure", {}, head);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${text}`,
    preserveAspectRatio: "none" }, ...paths(points, WIDTH, HEIGHT));
  const rows = known.map(([ms, value]) => el("tr", {}, cell(when(ms)), cell(format(value), "number")));
  const figures = el("details", { id: `figures-${id}` }, el("summary", {}, "Figures"),
    table(`${title}, figures`, ["When", title], rows.reverse(), ""));
  return el("figure", {}, head, drawing, figures);
}

// A small one within a row, of which the summary is the name.
export function sparkline(title, all, format) {
  const points = begun(all);
  if (!points.some(([, value]) => value !== null)) return el("span", { class: "soft" }, "–");
  return svg("svg", { class: "spark", viewBox: "0 0 100 24", role: "img", preserveAspectRatio: "none",
    "aria-label": `${title}: ${summary(points, format)}` }, ...paths(points, 100, 24).slice(0, 1));
}

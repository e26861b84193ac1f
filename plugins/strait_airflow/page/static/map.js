// Which cluster feeds which: the boxes are clusters, the lines links, as urgent as the most urgent of them.
import { address, cell, el, number, perSecond, plural, seconds, svg, table } from "./dom.js";
import { addressed } from "./frame.js";
import { isDense, layout } from "./map_layout.js";
import { printable } from "./text.js";

const WIDE = { box: 150, gap: 160 };
const NARROW = { box: 104, gap: 120 };
const NARROW_BELOW = 600;
const EDGE = 2;
const FRAME = 26; // the border around the map, and what it keeps free
const LETTER = 7;
const BOLD = 8;
const DAY = 86_400;
const LATE = 60;
const ARROW = 7;

const cut = (text, most) => {
  const shown = [...printable(text)];
  return shown.length > most ? `${shown.slice(0, most - 1).join("")}…` : shown.join("");
};
const listed = (wanted) => `${address()}?${new URLSearchParams(wanted)}`;

function rate(edge) {
  if (edge.records_per_second === null) return "rate unknown";
  return `${edge.rate_unknown ? "≥ " : ""}${perSecond(edge.records_per_second, number)}/s`;
}
const losing = (edge) => (edge.seconds_to_loss ?? Infinity) < DAY;
const second = (edge) => (losing(edge) ? `lost in ${seconds(edge.seconds_to_loss)}`
  : edge.lag_seconds > LATE ? `${rate(edge)}, ${seconds(edge.lag_seconds)} late` : rate(edge));
const first = (edge) => (edge.links === 1 ? edge.names[0] : `${edge.links} links`);
const inPools = (edge) => (edge.pooled === edge.links ? ` in ${edge.pools.join(", ")}` : "");
const pools = (edge) => (edge.pooled === edge.links ? `, in pool ${edge.pools.join(", ")}` : "");
const named = (edge) => (edge.links === 1 ? "" : `: ${edge.names.slice(0, 10).join(", ")}${edge.links > 10 ? ", …" : ""}`);

// One link leads to its view, several to their list.
const target = (edge) => (edge.links === 1 ? address("link", edge.names[0])
  : listed(edge.of === 1 ? { source: edge.source, destination: edge.destination } : { search: edge.right }));
const told = (edge) => `${edge.of > 1 ? "several clusters" : edge.source} to ${edge.destination}: ${first(edge)}, `
  + `${edge.badge.word}, ${second(edge)}${pools(edge)}`;

function curve(points) {
  return points.map(([from, to], at) => {
    const middle = (from.x + to.x) / 2;
    return `${at ? "L" : "M"}${from.x} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
  }).join(" ");
}

function edgePart(edge, chosen, letters) {
  const start = edge.points[0][0];
  const end = edge.points.at(-1)[1];
  const [tip, back] = edge.back ? [start, ARROW] : [end, -ARROW];
  const [from, to] = edge.points[0];
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  const path = curve(edge.points);
  return svg("a", { href: target(edge), class: `edge ${edge.badge.level}${chosen ? " chosen" : ""}`, "aria-label": told(edge) },
    svg("title", {}, `${told(edge)}${named(edge)}`),
    svg("path", { class: "reach", d: path }), svg("path", { d: path }),
    svg("polygon", { points: `${tip.x},${tip.y} ${tip.x + back},${tip.y - 4} ${tip.x + back},${tip.y + 4}` }),
    svg("text", { x, y: y - 5 }, `${edge.badge.sign} ${cut(`${first(edge)}${inPools(edge)}`, letters)}`),
    svg("text", { x, y: y + 14, class: losing(edge) ? "person" : "soft" }, cut(second(edge), letters + 4)));
}

function boxPart(box, letters) {
  const many = box.names.length > 1;
  const name = many ? plural(box.names.length, "cluster") : box.names[0];
  const middle = box.x + box.width / 2;
  return svg("a", { href: many ? listed({ map: "all" }) : listed({ search: name }), class: `box${many ? " many" : ""}`,
    "aria-label": many ? `${name}: show each` : `cluster ${name}: its links` },
    svg("title", {}, many ? box.names.join(", ") : name),
    ...(many ? [svg("rect", { x: box.x + 4, y: box.y + 4, width: box.width, height: box.height, rx: 6 })] : []),
    svg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 }),
    svg("text", { x: middle, y: box.y + box.height / 2 + 5 }, cut(name, letters)));
}

// Where the drawing has no room, as on a phone: each pair of clusters is a line of text, the most urgent first.
const URGENT = ["person", "passing"];
const urgency = (edge) => (URGENT.indexOf(edge.badge.level) + 1 || URGENT.length + 1);

function pairs({ edges }) {
  const line = (edge) => el("li", {}, el("a", { href: target(edge), class: `pair ${edge.badge.level}`, "aria-label": told(edge) },
    `${edge.badge.sign} ${edge.source} → ${edge.destination}`), ` ${first(edge)}${inPools(edge)}: `,
  el("span", { class: losing(edge) ? "bad" : "soft" }, second(edge)));
  const sorted = [...edges].sort((one, other) => urgency(one) - urgency(other));
  return el("div", { class: "scroll map", tabindex: "0", role: "region", "aria-label": "Map of clusters and links" },
    el("ul", { class: "pairs" }, ...sorted.map((edge) => line({ ...edge, of: 1 }))));
}

function drawing({ edges }, width) {
  const { source, destination, map } = Object.fromEntries(addressed());
  const room = width < NARROW_BELOW ? NARROW : WIDE;
  const found = layout(edges, { ...room, width: width - FRAME - 4 * EDGE }, map === "all");
  if (width < NARROW_BELOW && found.width > width - FRAME - 4 * EDGE) return pairs({ edges });
  const size = { width: found.width + 4 * EDGE, height: found.height + 4 * EDGE };
  const [boxes, lines] = [[room.box, BOLD], [found.gap, LETTER]].map(([wide, letter]) => Math.floor(wide / letter) - 3);
  return el("div", { class: "scroll map", tabindex: "0", role: "region", "aria-label": "Map of clusters and links" },
    svg("svg", { ...size, viewBox: `${-EDGE} ${-EDGE} ${size.width} ${size.height}`, role: "group",
      "aria-label": `${edges.length} pairs of clusters` },
    ...found.edges.map((edge) => edgePart(edge, edge.of === 1 && edge.source === source && edge.destination === destination, lines)),
    ...found.boxes.map((box) => boxPart(box, boxes))));
}

// Of many links between the same clusters a table can be read: each row a source, each column a destination.
function matrix({ edges }) {
  const of = (end) => [...new Set(edges.map((edge) => edge[end]))].sort();
  const destinations = of("destination");
  const rows = of("source").map((source) => el("tr", {}, cell(el("strong", {}, source), "name title"),
    ...destinations.map((destination) => {
      const edge = edges.find((one) => one.source === source && one.destination === destination);
      if (!edge) return cell("–", "number");
      return cell(el("a", { href: target(edge), class: `pair ${edge.badge.level}`, title: `${told(edge)}${named(edge)}`,
        "aria-label": told(edge) }, `${edge.badge.sign} ${losing(edge) ? second(edge) : rate(edge)}`), "number");
    })));
  return el("div", { class: "matrix" }, table("Map of clusters and links", ["From, to", ...destinations], rows, ""));
}

export function mapPart(found, width) {
  if (!found.edges.length) return [];
  const missing = found.unknown
    ? [el("p", { class: "soft" }, `${plural(found.unknown, "link is", "links are")} not on the map: `
      + `${found.unknown === 1 ? "its" : "their"} clusters are not known yet.`)] : [];
  return [isDense(found.edges) ? matrix(found) : drawing(found, width), ...missing];
}

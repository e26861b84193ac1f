// What every view is made of. All that comes from outside is put in as text, never as HTML, and printable.
import { printable } from "./text.js";

const READ = ["aria-label", "title", "placeholder", "alt"]; // others are addresses, ids and values that are sent back

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== null && value !== false)
      made.setAttribute(name, READ.includes(name) ? printable(value) : value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : printable(child))));
  return made;
}

export const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Gives an element that is there another text, if it is another one: some are read out.
export function put(element, text) {
  const shown = printable(text);
  if (element.textContent !== shown) element.textContent = shown;
}

// Gives it another name, for those who do not see it.
export const label = (element, text) => filled(element, { "aria-label": text }, []);

export const cell = (value, kind = "") => el("td", { class: kind, role: "cell" }, value);

// On a narrow screen each row is a card, in which each cell has its column's name; so the roles of a table are named.
export function table(caption, heads, rows, empty) {
  const nothing = el("td", { colspan: heads.length, class: "soft", role: "cell" }, empty);
  const body = rows.length ? rows : [el("tr", {}, nothing)];
  const columns = heads.map((each) => (each instanceof Node ? each : el("th", { scope: "col" }, each)));
  const head = el("tr", { role: "row" }, ...columns);
  columns.forEach((one, at) => {
    one.setAttribute("role", "columnheader");
    const first = rows[0]?.cells[at];
    one.classList.toggle("number", first?.classList.contains("number") ?? false);
    one.classList.toggle("wide", first?.classList.contains("wide") ?? false);
  });
  const names = columns.map((one) => one.dataset.name ?? one.textContent);
  for (const row of body) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((one, at) => {
      if (rows.length) one.dataset.name = names[at];
      one.classList.toggle("none", one.textContent === "–");
    });
  }
  const made = el("table", { role: "table", "aria-label": caption },
    el("thead", { role: "rowgroup" }, head), el("tbody", { role: "rowgroup" }, ...body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

export const facts = (pairs) =>
  el("dl", {}, ...pairs.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));

// A state: its word, and a sign and a color for its urgency. All three come from the server.
export const badge = ({ word, level, sign }) =>
  el("span", { class: `badge ${level}` }, el("span", { "aria-hidden": "true" }, sign), ` ${word}`);

// Text with code between backticks.
export const prose = (text) => el("span", {}, ...String(text).split("`").map((part, at) =>
  (at % 2 ? el("code", {}, part) : part)));

// Figures as people read them; "–" is what is not known.
const unknown = (value) => value === undefined || value === null || value < 0;
export const exact = (value) => (unknown(value) ? "–" : Math.round(value).toLocaleString("en"));
const LARGE = ["", "k", "M", "G", "T", "P"];
export function number(value) {
  if (unknown(value) || value < 1e6) return exact(value);
  const power = Math.min(LARGE.length - 1, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(1)} ${LARGE[power]}`;
}
// On an axis, where the numbers are round.
export function short(value) {
  const power = value < 1000 ? 0 : Math.min(LARGE.length - 1, Math.floor(Math.log10(value) / 3));
  return `${Number((value / 1000 ** power).toPrecision(6))}${power ? ` ${LARGE[power]}` : ""}`;
}
// A number with its noun, and with a verb if that follows: plural(1, "link is", "links are").
export const plural = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const count = (value) => (unknown(value) || value < 1e6 ? exact(value)
  : el("span", { title: exact(value) }, number(value)));
// A number per second: a small one has its digits, so that only what stands still is 0.
export const perSecond = (value, large = count) => (value > 0 && value < 1 ? String(Number(value.toPrecision(2)))
  : large(value));
// A total of which some parts are not known.
export const total = (known, unknownParts) => (!unknownParts ? count(known) : known
  ? el("span", { title: `${plural(unknownParts, "partition")} unknown` }, "≥ ", count(known)) : "–");
export function seconds(value) {
  if (unknown(value)) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  const minutes = Math.round(value / 60);
  if (minutes < 60) return `${minutes} min`;
  const [large, big, small, little] = minutes < 1440 ? [Math.floor(minutes / 60), "h", minutes % 60, "min"]
    : [Math.floor(minutes / 1440), "d", Math.floor(minutes / 60) % 24, "h"];
  return `${large} ${big}${small ? ` ${small} ${little}` : ""}`;
}
const DAY = 86_400;
// The time until retention deletes records that are not copied: red within a day.
export const untilLoss = (value) => (unknown(value) ? "–"
  : el("span", { class: value < DAY ? "bad" : "" }, seconds(value)));
export const millis = (value) => (unknown(value) ? "–" : `${Math.round(value)} ms`);
const UNITS = ["B", "kB", "MB", "GB", "TB"];
export function bytes(value) {
  if (unknown(value)) return "–";
  const power = Math.min(UNITS.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(power ? 1 : 0)} ${UNITS[power]}`;
}
export const roundBytes = (value) => bytes(value).replace(".0 ", " ");
const LAST_MS = 8.64e15; // of a Date; the timestamp of a record may be any number
export const when = (ms) => (Math.abs(ms) <= LAST_MS
  ? `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC` : "–");
let aheadMs = 0; // of the server's clock
export const ago = (ms) => el("time", { datetime: new Date(ms).toISOString(), title: when(ms) },
  `${seconds(Math.max(0, Date.now() + aheadMs - ms) / 1000)} ago`);

// How old the view's figures are, of each part.
let ages = [];
export const forget = () => { ages = []; };
function note(found) {
  const { age_seconds: seconds, every_seconds: every } = found ?? {};
  if (typeof seconds === "number") ages.push({ seconds, every });
  return found;
}

// The part that is told of: the one whose next look is overdue longest, if that is more than `most` seconds, else the one that
// is looked at most often. null: the view has no figures.
export function ageOfView(most) {
  const late = (one) => one.seconds - one.every;
  const oldest = ages.reduce((found, one) => (!found || late(one) > late(found) ? one : found), null);
  if (!oldest || late(oldest) > most) return oldest && { seconds: oldest.seconds, late: late(oldest) };
  const { seconds } = ages.reduce((found, one) => (one.every < found.every ? one : found));
  return { seconds, late: late(oldest) };
}

// Addresses of the page's own views.
export const address = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

// The way back from a view: to all links, to the link, and to what else is given, as [text, address's parts].
export function above(link, ...more) {
  const steps = [["All links", []], ...(link === undefined ? [] : [[link, ["link", link]]]), ...more];
  const links = steps.map(([text, parts]) => el("a", { href: address(...parts) }, text));
  return el("nav", { "aria-label": "Above" }, ...links.flatMap((one, at) => (at ? [" / ", one] : [one])));
}

// Instead of what was not read yet, or cannot be.
export const unread = ({ error, looking }) => el("p", { role: "status", class: error ? "bad" : "soft" },
  error || (looking ? "Being read …" : "Not known."));

// Which of Airflow's own components do not run: then no run looks after the links.
export async function airflowPart() {
  const told = (text) => el("p", { class: "bad", role: "alert" }, text);
  try {
    const { components } = await ask("airflow");
    return components.filter((one) => one.problem).map((one) => told(`Airflow's ${one.problem}.`));
  } catch (error) { // its database may be away, and links still be read
    if (!(error.status >= 500)) throw error;
    return [told(`Whether Airflow's components run is not known: ${error.message}.`)];
  }
}

const TRIES = 5;
const LATER_MS = 1000;

// What is not allowed, where the answer names it: Airflow's own have but this word, or an identity provider's page.
const named = (detail) => (typeof detail === "string" && detail !== "Forbidden" ? `: ${detail}` : "");

async function reply(request) {
  const answer = await request.catch(() => { throw new Error("Airflow does not answer; trying again."); });
  const behindMs = Date.parse(answer.headers.get("Date")) - Date.now();
  aheadMs = Math.abs(behindMs) > 2000 ? behindMs : 0; // the header has whole seconds
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const { detail } = await answer.json().catch(() => ({}));
  const several = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : "";
  const said = typeof detail === "string" ? detail : several || `Airflow answers ${answer.status}`;
  const refused = { 401: "You are not signed in to Airflow any more.",
    403: `Airflow does not allow you to do this${named(detail)}; ask its administrator.` }[answer.status];
  throw Object.assign(new Error(refused || said), { status: answer.status });
}

const sent = (body) =>
  ({ headers: { Accept: "application/json", "Content-Type": "application/json" }, body: JSON.stringify(body) });

// The page's own interface: it only reads.
export const ask = async (path) =>
  note(await reply(fetch(`api/v1/${path}`, { headers: { Accept: "application/json" } })));

export const askWith = (path, body) => reply(fetch(`api/v1/${path}`, { method: "POST", ...sent(body) }));

export const later = () => new Promise((resolve) => { setTimeout(resolve, LATER_MS); });

// Airflow's own interface, with its own permissions: all that the page changes, it changes by it. What was not answered,
// or with an error of Airflow's own (500 while another of its processes holds the lock of its database), is sent again:
// whoever writes, writes what may come twice. A conflict then says that an earlier request was taken.
export async function airflow(method, path, body) {
  const once = () => reply(fetch(new URL(`../api/v2/${path}`, document.baseURI), { method, ...sent(body) }));
  for (let tries = 1; ; tries += 1) {
    try {
      return await once();
    } catch (error) {
      if (tries > 1 && error.status === 409) return null;
      if (tries === TRIES || error.status < 500) throw error;
    }
    await later();
  }
}

// A link to one of Airflow's own pages. Airflow's frame may open no window, so the click is made outside of it.
export function airflowLink(path, text) {
  const href = new URL(`../${path}`, document.baseURI).href;
  const open = (event) => {
    if (parent === window) return;
    event.preventDefault();
    const outside = parent.document.createElement("a");
    outside.href = href;
    parent.document.body.append(outside);
    outside.click();
    outside.remove();
  };
  return el("a", { href, onclick: open }, text);
}

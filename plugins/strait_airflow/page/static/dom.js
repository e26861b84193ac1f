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

export const cell = (value, kind = "") => el("td", { class: kind }, value);

export function table(caption, heads, rows, empty) {
  const body = rows.length ? rows : [el("tr", {}, el("td", { colspan: heads.length, class: "soft" }, empty))];
  const head = el("tr", {}, ...heads.map((each) => (each instanceof Node ? each : el("th", { scope: "col" }, each))));
  [...head.cells].forEach((one, at) => one.classList.toggle("number", rows[0]?.cells[at]?.className === "number"));
  const made = el("table", {}, el("thead", {}, head), el("tbody", {}, ...body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

export const facts = (pairs) =>
  el("dl", {}, ...pairs.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));

export function stateOf(row) {
  const kind = row.needs_person || row.needs_decision ? "bad" : row.state === "waiting" ? "" : "good";
  return el("span", { class: kind }, row.state.replaceAll("_", " "));
}

// Figures as people read them; "–" is what is not known.
const unknown = (value) => value === undefined || value === null || value < 0;
export const number = (value) => (unknown(value) ? "–" : Math.round(value).toLocaleString("en"));
export const seconds = (value) => (unknown(value) ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} s`);
export const millis = (value) => (unknown(value) ? "–" : `${Math.round(value)} ms`);
const UNITS = ["B", "kB", "MB", "GB", "TB"];
export function bytes(value) {
  if (unknown(value)) return "–";
  const power = Math.min(UNITS.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(power ? 1 : 0)} ${UNITS[power]}`;
}
export const when = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;

// Addresses of the page's own views.
export const address = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

// The way back from a view: to all links, to the link, and to what else is given, as [text, address's parts].
export function above(link, ...more) {
  const steps = [["All links", []], ...(link === undefined ? [] : [[link, ["link", link]]]), ...more];
  const links = steps.map(([text, parts]) => el("a", { href: address(...parts) }, text));
  return el("nav", { "aria-label": "Above" }, ...links.flatMap((one, at) => (at ? [" / ", one] : [one])));
}

// Which of Airflow's own components do not run: then no run looks after the links.
export async function airflowPart() {
  const { components } = await ask("airflow");
  const problems = components.flatMap((one) => (one.problem ? [one.problem] : []));
  return problems.map((problem) => el("p", { class: "bad", role: "alert" }, `Airflow's ${problem}.`));
}

const TRIES = 5;
const LATER_MS = 1000;

async function reply(request) {
  const answer = await request.catch(() => { throw new Error("Airflow does not answer; trying again."); });
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const { detail } = await answer.json().catch(() => ({}));
  const several = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : "";
  const said = typeof detail === "string" ? detail : several || `Airflow answers ${answer.status}`;
  const refused = answer.status === 403 ? "Airflow does not allow you to do this; ask its administrator." : "";
  throw Object.assign(new Error(refused || said), { status: answer.status });
}

const sent = (body) =>
  ({ headers: { Accept: "application/json", "Content-Type": "application/json" }, body: JSON.stringify(body) });

// The page's own interface: it only reads.
export const ask = (path) => reply(fetch(`api/v1/${path}`, { headers: { Accept: "application/json" } }));

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

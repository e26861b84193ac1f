// Which view is shown, and that it stays new.
import { above, ageOfView, airflowLink, el, forget, put, seconds } from "./dom.js";
import { showAddress, takeAddress, takeLook } from "./frame.js";
import { groupView, groupsView } from "./groups.js";
import { applicationsView, linkView, partitionsView, planView, topicsView } from "./link.js";
import { linksView } from "./links.js";
import { partitionView } from "./partition.js";
import { recoveryView, reportView } from "./recovery.js";

const LOOK_MS = 2000;
const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
const asOf = document.getElementById("as-of");
const STALE_SECONDS = 10; // after the next look should have been over
const SLOW_MS = 400; // an answer that takes longer is waited for visibly
const [SIGNED_OUT, NOT_THERE] = [401, 404];
const signIn = el("p", { hidden: true }, airflowLink("", "Sign in to Airflow"));
trouble.after(signIn);

// The address after "#/" -> the view, which gives the elements of its newest state. `show` draws it anew at once.
const VIEWS = [
  [/^link\/([^/]+)$/, linkView],
  [/^link\/([^/]+)\/topics$/, topicsView],
  [/^link\/([^/]+)\/partitions$/, partitionsView],
  [/^link\/([^/]+)\/applications$/, applicationsView],
  [/^link\/([^/]+)\/plan$/, planView],
  [/^link\/([^/]+)\/partition\/([^/]+)\/(\d+)$/, partitionView],
  [/^link\/([^/]+)\/groups$/, groupsView],
  [/^link\/([^/]+)\/groups\/([^/]+)$/, groupView],
  [/^link\/([^/]+)\/recovery$/, recoveryView],
  [/^link\/([^/]+)\/recovery\/([^/]+)$/, reportView],
  [/^$/, linksView],
];

function view() {
  const path = location.hash.replace(/^#\/?/, "").split("?")[0];
  for (const [pattern, shown] of VIEWS) {
    const matched = pattern.exec(path);
    if (matched) return shown(...matched.slice(1).map(decodeURIComponent), show);
  }
  return [above(), el("h2", {}, "Nothing here"), el("p", {}, "The page has no such view.")];
}

// How old what is shown is, also if nothing new comes. A problem with one part makes all of it old.
let shown = { age: null, at: 0, path: null };
function tellAge() {
  const since = (performance.now() - shown.at) / 1000;
  const age = (shown.age?.seconds ?? 0) + since;
  const stale = shown.age !== null && shown.age.late + since > STALE_SECONDS;
  put(asOf, shown.age === null ? "" : `As of ${age < 120 ? `${Math.floor(age)} s` : seconds(age)} ago`);
  main.classList.toggle("stale", stale);
  asOf.classList.toggle("bad", stale);
}

// Whether a new look would take something away under the fingers: an open list, or text that is just being selected.
function inUse() {
  const selection = getSelection();
  const selecting = !selection.isCollapsed && main.contains(selection.anchorNode);
  try {
    return selecting || main.querySelector("select:open") !== null;
  } catch { // an older browser
    return selecting || (document.activeElement?.tagName === "SELECT" && main.contains(document.activeElement));
  }
}

// A new look replaces all; what was open, and where the keyboard is, stays.
function replaceMain(parts) {
  const open = new Set([...main.querySelectorAll("details[open]")].map((one) => one.id));
  const active = document.activeElement;
  const [id, from, to] = [active?.id, active?.selectionStart, active?.selectionEnd];
  const scrolled = new Map([...main.querySelectorAll(".scroll")].map((one) => [one.ariaLabel, [one.scrollLeft, one.scrollTop]]));
  main.replaceChildren(...parts);
  main.querySelectorAll("details").forEach((one) => { one.open = open.has(one.id); });
  main.querySelectorAll(".scroll").forEach((one) => { one.scrollTo(...(scrolled.get(one.ariaLabel) ?? [0, 0])); });
  const again = id && id !== "main" ? document.getElementById(id) : null;
  again?.focus({ preventScroll: true });
  if (again?.type === "search" && typeof from === "number") again.setSelectionRange(from, to);
}

// Under an address of another view nothing of the one before stays, neither figures nor buttons.
function empty(path, text, kind = "soft") {
  if (main.dataset.empty === `${path} ${text}`) return; // it is read out once
  shown = { age: null, at: performance.now(), path: null };
  replaceMain([above(), el("p", { role: kind === "bad" ? "alert" : "status", class: kind }, text)]);
  main.dataset.empty = `${path} ${text}`;
}

function showTrouble(error) {
  put(trouble, error?.message ?? "");
  signIn.hidden = error?.status !== SIGNED_OUT;
}

let turn = 0;
let timer;
async function draw(asked) {
  clearTimeout(timer);
  const mine = ++turn;
  const [path] = location.hash.split("?");
  const other = shown.path !== path;
  const waits = other && !main.dataset.empty?.startsWith(`${path} `);
  const slow = waits && setTimeout(() => { if (mine === turn) empty(path, "Loading …"); }, SLOW_MS);
  try {
    forget();
    const parts = await view();
    if (mine !== turn) return;
    if (asked || other || !inUse()) {
      replaceMain(parts);
      delete main.dataset.empty;
    }
    shown = { age: ageOfView(STALE_SECONDS), at: performance.now(), path };
    showTrouble(null);
  } catch (error) {
    if (mine !== turn) return;
    // What is gone is not shown any longer; of all else, the last state stays.
    const gone = error.status === NOT_THERE;
    if (gone || other) empty(path, error.message, "bad");
    showTrouble(gone || (other && error.status !== SIGNED_OUT) ? null : error);
  } finally {
    clearTimeout(slow);
  }
  tellAge();
  if (!document.hidden) timer = setTimeout(() => draw(false), LOOK_MS);
}

// At once, since somebody wants to see something else.
const show = () => draw(true);

takeAddress();
takeLook();
setInterval(tellAge, 1000);
setInterval(takeLook, LOOK_MS); // Airflow tells a frame nothing when its own theme is switched
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", takeLook);

let resized;
addEventListener("resize", () => { // charts and the map are as wide as the window
  clearTimeout(resized);
  resized = setTimeout(show, 200);
});
addEventListener("hashchange", () => { showAddress(); show(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) draw(false); });
show();

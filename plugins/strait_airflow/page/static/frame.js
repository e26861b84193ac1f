// The page in Airflow's frame. The browser's address bar shows the outer page, so the view is in its address, too.

// Airflow's window around the frame; null where there is none.
function outside() {
  try {
    return parent !== window && parent.location.origin === location.origin ? parent : null;
  } catch {
    return null; // another origin's
  }
}

function replace(where, hash) {
  const { pathname, search } = where.location;
  where.history.replaceState(where.history.state, "", `${pathname}${search}${hash}`);
}

// At the start: the view that the outer address names. Airflow hands over only those that it has written itself.
export function takeAddress() {
  const outer = outside();
  if (outer && !location.hash && outer.location.hash.startsWith("#/")) replace(window, outer.location.hash);
}

// Whenever another view is shown: a reload, a bookmark or a copied address leads to it.
export function showAddress() {
  const outer = outside();
  if (outer && outer.location.hash !== location.hash) replace(outer, location.hash);
}

// What the address says after the view, as `?search=…`.
export const addressed = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

// Change it, without another entry in the browser's history; null takes a name away.
export function readdress(changed) {
  const [path] = location.hash.split("?");
  const given = addressed();
  for (const [name, value] of Object.entries(changed)) {
    if (value === null) given.delete(name);
    else given.set(name, value);
  }
  replace(window, `${path || "#/"}${given.size ? `?${given}` : ""}`);
  showAddress();
}

// The width that a view has.
export function room() {
  const { paddingLeft, paddingRight } = getComputedStyle(document.getElementById("main"));
  return document.getElementById("main").clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

// What the page takes from Airflow's own look: its variable for each of ours.
const TAKEN = {
  "--back": "colors-bg", "--raised": "colors-bg-muted", "--text": "colors-fg", "--soft": "colors-fg-muted",
  "--line": "colors-border", "--edge": "colors-border-emphasized", "--font": "fonts-body", "--mono": "fonts-mono",
  "--radius": "radii-md",
};

// Light or dark, fonts, colors and radii are those of Airflow's window around the frame, if there is one.
export function takeLook() {
  const outer = outside();
  const { classList, style } = document.documentElement;
  const dark = outer ? outer.document.documentElement.classList.contains("dark")
    : matchMedia("(prefers-color-scheme: dark)").matches;
  classList.toggle("dark", dark);
  if (!outer) return;
  const look = outer.getComputedStyle(outer.document.documentElement);
  for (const [ours, its] of Object.entries(TAKEN)) {
    const value = look.getPropertyValue(`--chakra-${its}`).trim();
    if (value && style.getPropertyValue(ours) !== value) style.setProperty(ours, value);
  }
}

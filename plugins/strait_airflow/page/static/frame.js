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

// Whether Airflow's own theme is dark; null where there is no frame of its.
export function outerTheme() {
  const outer = outside();
  return outer && outer.document.documentElement.classList.contains("dark");
}

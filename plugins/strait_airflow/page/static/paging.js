// A list that the server searches and pages.
import { el } from "./dom.js";

const PAGE = 20;
const SEARCHED = 249; // as long as a topic's name can be

// What is wanted of a list: kept as long as the same thing is looked at. `id` begins the ids of its elements.
export function listing(id, defaults) {
  let shown = null;
  const wanted = { offset: 0 };
  return {
    id,
    wanted,
    query(what) {
      if (shown !== what) Object.assign(wanted, defaults, { offset: 0 });
      shown = what;
      return new URLSearchParams({ ...wanted, limit: PAGE });
    },
    want(changed, show) {
      Object.assign(wanted, { offset: 0 }, changed);
      show();
    },
  };
}

export function searchField(list, label, show) {
  const input = el("input", { id: `${list.id}search`, type: "search", maxlength: SEARCHED, value: list.wanted.search,
    oninput: (event) => list.want({ search: event.target.value }, show) });
  return el("label", {}, label, input);
}

export function choice(list, name, label, values, show) {
  const options = ["", ...values].map((one) =>
    el("option", { value: one, selected: one === list.wanted[name] }, one.replaceAll("_", " ") || "any"));
  const take = (event) => list.want({ [name]: event.target.value }, show);
  const select = el("select", { id: `${list.id}${name}`, onchange: take }, ...options);
  return el("label", {}, label, select);
}

export const filters = (...fields) => el("form", { onsubmit: (event) => event.preventDefault() }, ...fields);

export function pager(list, total, show) {
  const { offset } = list.wanted;
  const last = Math.min(offset + PAGE, total);
  const button = (id, label, to, disabled) => el("button", { id: `${list.id}${id}`, type: "button", disabled,
    onclick: () => list.want({ offset: Math.max(0, to) }, show) }, label);
  return el("p", {},
    button("before", "Previous", offset - PAGE, offset === 0), " ",
    el("span", { id: `${list.id}range` }, total ? `${offset + 1}–${last} of ${total}` : "0 of 0"), " ",
    button("after", "Next", offset + PAGE, last >= total));
}

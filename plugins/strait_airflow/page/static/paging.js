// A list that the server searches, sorts and pages. What is wanted of it is in the address, so that it can be sent.
import { el } from "./dom.js";
import { addressed, readdress } from "./frame.js";

const PAGE = 20;
const SEARCHED = 249; // as long as a topic's name can be

const typed = (text, like) => (typeof like === "number" ? Number(text) || 0
  : typeof like === "boolean" ? text === "true" : text);

// `id` begins the ids of its elements, and its names in the address.
export function listing(id, defaults, page = PAGE) {
  const all = { ...defaults, offset: 0 };
  const list = {
    id,
    page,
    get wanted() {
      const given = addressed();
      return Object.fromEntries(Object.entries(all).map(([name, value]) =>
        [name, given.has(id + name) ? typed(given.get(id + name), value) : value]));
    },
    query: () => new URLSearchParams({ ...list.wanted, limit: page }),
    want(changed, show) {
      const now = { ...list.wanted, offset: 0, ...changed };
      readdress(Object.fromEntries(Object.entries(now).map(([name, value]) =>
        [id + name, value === all[name] ? null : String(value)])));
      show();
    },
  };
  return list;
}

export function searchField(list, label, show) {
  const input = el("input", { id: `${list.id}search`, type: "search", maxlength: SEARCHED, value: list.wanted.search,
    oninput: (event) => list.want({ search: event.target.value }, show) });
  return el("label", {}, label, input);
}

// `values`: [value, text], the text as people read it.
export function choice(list, name, label, values, show) {
  const { [name]: chosen } = list.wanted;
  const options = [["", "any"], ...values].map(([value, text]) =>
    el("option", { value, selected: value === chosen }, text));
  const take = (event) => list.want({ [name]: event.target.value }, show);
  const select = el("select", { id: `${list.id}${name}`, onchange: take }, ...options);
  return el("label", {}, label, select);
}

export const filters = (...fields) => el("form", { onsubmit: (event) => event.preventDefault() }, ...fields);

// The head of a column by which the list can be sorted; `first`: whether its largest values come first at first.
export function sortHead(list, label, key, show, { first = true, kind = "" } = {}) {
  const { sort, descending } = list.wanted;
  const now = sort === key;
  const turn = () => { // again before the list is drawn anew, too
    const { sort: present, descending: down } = list.wanted;
    list.want({ descending: present === key ? !down : first, sort: key }, show);
  };
  const order = now ? (descending ? "descending" : "ascending") : "none";
  const arrow = { descending: " ↓", ascending: " ↑", none: "" }[order];
  const button = el("button", { type: "button", id: `${list.id}sort-${key}`, onclick: turn }, label + arrow);
  return el("th", { scope: "col", "aria-sort": order, "data-name": label, class: kind }, button);
}

// Of an empty list it is hidden.
export function pager(list, total, show) {
  const { page } = list;
  const { offset } = list.wanted;
  const last = Math.min(offset + page, total);
  const button = (id, label, to, disabled) => el("button", { id: `${list.id}${id}`, type: "button", disabled,
    onclick: () => list.want({ offset: Math.max(0, to) }, show) }, label);
  return el("p", { hidden: !total },
    button("before", "Previous", offset - page, offset === 0), " ",
    el("span", { id: `${list.id}range` }, `${exactly(offset + 1)}–${exactly(last)} of ${exactly(total)}`),
    " ", button("after", "Next", offset + page, last >= total));
}

const exactly = (value) => value.toLocaleString("en");

// Dialogs over the page. They stand outside of what every new look replaces.
import { el } from "./dom.js";

let count = 0;

// `build` gets a function that closes the dialog, and gives what is in it. The keyboard goes back to where it was.
export function openDialog(title, build) {
  const opener = document.activeElement?.id;
  const id = `dialog-${++count}`;
  const dialog = el("dialog", { "aria-labelledby": id }, el("h2", { id }, title));
  dialog.append(...build(() => dialog.close()));
  dialog.addEventListener("close", () => {
    dialog.remove();
    (opener ? document.getElementById(opener) : null)?.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// A control with its label and, apart from its name, what more there is to know.
export function field(label, control, hint = "") {
  if (!hint) return el("label", {}, label, control);
  const id = `hint-${++count}`;
  control.setAttribute("aria-describedby", id);
  return el("div", {}, el("label", {}, label, control), el("small", { id, class: "soft" }, hint));
}

export function select(name, options, chosen) {
  const made = options.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
  return el("select", { name }, ...made);
}

// One of several; where there is only one, no list.
export const choose = (label, name, options) => (options.length > 1 ? field(label, select(name, options))
  : el("p", {}, `${label}: ${options[0][1]}`, el("input", { type: "hidden", name, value: options[0][0] })));

// A button that opens a dialog; the page says beside it why it cannot be pressed.
export const opens = (id, text, open, allowed) =>
  el("button", { id, type: "button", disabled: !allowed, onclick: open }, `${text}…`);

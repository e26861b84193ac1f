// What people take with them: names, offsets and the command that does the same.
import { el, label, later, put } from "./dom.js";

const SHOWN = "Copied";
const PLAIN = /^[\w@%+=:,./-]+$/;

// As a shell takes it for one word.
const quoted = (word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
export const command = (...words) => words.map(quoted).join(" ");

// Without https a browser gives no clipboard; then the old way.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = el("textarea", {}, text);
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("the browser does not copy");
}

export function copyButton(text, what) {
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await copied(text);
      put(button, SHOWN);
    } catch {
      put(button, "Not copied");
    }
    await later();
    put(button, "Copy");
  });
  return label(button, `Copy ${what}`);
}

// A value with its button.
export const copyable = (text, what, raw = text) => el("span", { class: "copyable" }, text, " ", copyButton(raw, what));

// The command line that shows or does the same as the view.
export const commandPart = (...words) => el("p", { class: "command soft" }, "In a terminal: ",
  el("code", {}, command(...words)), " ", copyButton(command(...words), "the command"));

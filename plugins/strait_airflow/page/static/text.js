// The only way to what people read. Names, reasons and errors come from brokers, state topics and other users, so each
// character that is not visible is escaped, as in a terminal: it could turn the direction of a text or hide a part of it.

const HIDDEN = /(?![\n\t ])[\p{C}\p{Z}]/gu;

function escaped(character) {
  const code = character.codePointAt(0);
  const [mark, digits] = code > 0xffff ? ["U", 8] : code > 0xff ? ["u", 4] : ["x", 2];
  return `\\${mark}${code.toString(16).padStart(digits, "0")}`;
}

export const printable = (text) => String(text).replace(HIDDEN, escaped);

// Elements of the page. Text is only ever set by textContent, so that it cannot become markup.

export const byId = (id) => document.getElementById(id);

export function element(name, { text, kind, label, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  if (label) made.setAttribute("aria-label", label);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function percent(probability) {
  const value = 100 * probability;
  if (value < 0.1) return "<0.1 %";
  if (value >= 99.5) return ">99 %";
  return `${value < 1 ? value.toFixed(1) : Math.round(value)} %`;
}

// A piece of the vocabulary: ▁ stands for the space before a word.
export const isFirst = (piece) => piece.startsWith("▁") || isMark(piece);
export const isMark = (piece) => piece === "<s>" || piece === "</s>";
export const isSymbol = (piece) => /^<.+>$/.test(piece); // a mark, or a byte such as <0xD7>
export const plain = (piece) => piece.replace(/^▁/, "") || "▁";
// The two invisible signs keep a piece that is written from right to left in its place within an English sentence.
export const quoted = (piece) => (isMark(piece) ? piece : `“\u2068${plain(piece)}\u2069”`);

// A piece as SentencePiece writes it, with a pale sign for the space.
export function written(piece) {
  if (!piece.startsWith("▁")) return element("span", { text: piece, dir: "auto" });
  return element("span", { dir: "auto" }, element("i", { text: "▁" }), piece.slice(1));
}

// One of the elements is reached by Tab, the others from it by the arrow keys. `next` names the element that a key leads to.
export function roving(box, selector, next) {
  const enter = (item) => {
    box.querySelectorAll(`${selector}[tabindex="0"]`).forEach((other) => (other.tabIndex = -1));
    item.tabIndex = 0;
  };
  box.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) enter(item);
  });
  box.addEventListener("keydown", (event) => {
    const item = event.target.closest(selector);
    const other = item && !event.ctrlKey && !event.altKey && !event.metaKey && next(item, event.key);
    if (!other) return;
    event.preventDefault();
    other.focus();
  });
}

// The pieces of both sides and the attention between them.

import { byId, element, isFirst, isMark, isSymbol, percent, plain, quoted, roving } from "./elements.js";

const MEAN = "mean"; // of all heads of a layer
const SHOWN = 0.01; // weights below are not written as numbers
const NAMED = 4; // pieces in the line below
const colour = (weight) => Math.sqrt(weight); // small weights can be told apart

function weights({ shape, weights }) {
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const [layers, heads, queries, keys] = shape;
  const at = (layer, head, query, key) => bytes[((layer * heads + head) * queries + query) * keys + key] / 255;
  const mean = (layer, query, key) => {
    let sum = 0;
    for (let head = 0; head < heads; head++) sum += at(layer, head, query, key);
    return sum / heads;
  };
  return { layers, heads, queries, keys, of: (layer, head, query, key) => (head === MEAN ? mean(layer, query, key) : at(layer, head, query, key)) };
}

export class Attention {
  constructor(choose) {
    this.choose = choose; // called with the place of a piece of the translation
    this.sides = { source: byId("source"), target: byId("target") };
    for (const [side, strip] of Object.entries(this.sides)) {
      strip.addEventListener("pointerover", (event) => this.point(event.target.closest(".piece")));
      strip.addEventListener("pointerleave", () => this.point(document.activeElement.closest?.(".piece")));
      strip.addEventListener("focusin", (event) => this.point(event.target.closest(".piece")));
      strip.addEventListener("focusout", () => this.point(null));
      strip.addEventListener("click", (event) => {
        const piece = event.target.closest(".piece");
        if (piece && side === "target" && Number(piece.dataset.place) >= 0) this.choose(Number(piece.dataset.place));
      });
      roving(strip, ".piece", (piece, key) => this.next(strip, piece, key));
    }
    byId("choose").addEventListener("change", (event) => {
      if (event.target.name === "kind") this.drawHeads();
      this.point(null);
    });
  }

  next(strip, piece, key) {
    const other = strip === this.sides.source ? this.sides.target : this.sides.source;
    const pieces = this.pieces(strip);
    const forward = getComputedStyle(strip).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    if (["ArrowLeft", "ArrowRight"].includes(key)) return pieces[pieces.indexOf(piece) + (key === forward ? 1 : -1)];
    if (key === "Home") return pieces[0];
    if (key === "End") return pieces[pieces.length - 1];
    if (key === (strip === this.sides.source ? "ArrowDown" : "ArrowUp"))
      return other.querySelector('[tabindex="0"]');
    return null;
  }

  pieces(strip) {
    return [...strip.querySelectorAll(".piece")];
  }

  show(source, found) {
    this.attention = Object.fromEntries(Object.entries(found.attention).map(([kind, of]) => [kind, weights(of)]));
    this.source = source;
    this.target = found.pieces;
    this.fill(this.sides.source, source.map((piece, place) => this.piece(piece, place, false)));
    const start = this.piece("<s>", -1, false);
    this.fill(this.sides.target, [start, ...found.pieces.map((piece, place) => this.piece(piece, place, place < found.forced))]);
    this.drawHeads();
    this.point(null);
  }

  piece(piece, place, forced) {
    const kind = ["piece", isFirst(piece) && "first", (isMark(piece) || piece === "▁") && "mark", forced && "forced"].filter(Boolean).join(" ");
    const text = isMark(piece) ? piece : plain(piece);
    const direction = isSymbol(piece) && { dir: "ltr" }; // it then does not decide the direction of its strip
    return element("button", { kind, type: "button", tabindex: -1, "data-place": place, ...direction }, element("span", { text }), element("small"));
  }

  fill(strip, pieces) {
    const words = [];
    for (const piece of pieces) {
      if (!words.length || piece.classList.contains("first")) words.push(element("span", { kind: "word" }));
      words[words.length - 1].append(piece);
    }
    strip.replaceChildren(...words);
    pieces.find((piece) => Number(piece.dataset.place) === 0).tabIndex = 0;
  }

  get kind() {
    return byId("choose").elements.kind.value;
  }

  get head() {
    const [layer, head] = byId("choose").elements.head.value.split(".");
    return [Number(layer), head === MEAN ? MEAN : Number(head)];
  }

  drawHeads() {
    const before = byId("choose").elements.head?.value;
    const { layers, heads } = this.attention[this.kind];
    const names = [MEAN, ...Array(heads).keys()];
    const grid = element("div", { kind: "grid" }, element("span"), ...names.map((head) => element("span", { text: head === MEAN ? MEAN : head + 1 })));
    grid.style.gridTemplateColumns = `auto repeat(${names.length}, 2.4rem)`;
    for (let layer = 0; layer < layers; layer++) {
      grid.append(element("span", { text: `layer ${layer + 1}` }));
      for (const head of names) grid.append(this.thumbnail(layer, head));
    }
    byId("heads").replaceChildren(grid);
    const chosen = grid.querySelector(`input[value="${before}"]`) || grid.querySelector(`input[value="${layers - 1}.${MEAN}"]`);
    chosen.checked = true;
  }

  thumbnail(layer, head) {
    const { queries, keys, of } = this.attention[this.kind];
    const canvas = element("canvas", { width: keys, height: queries });
    const context = canvas.getContext("2d");
    const image = context.createImageData(keys, queries);
    for (let query = 0; query < queries; query++)
      for (let key = 0; key < keys; key++) image.data.set([50, 124, 210, 255 * colour(of(layer, head, query, key))], 4 * (query * keys + key));
    context.putImageData(image, 0, 0);
    const name = head === MEAN ? "mean of all heads" : `head ${head + 1}`;
    const input = element("input", { type: "radio", name: "head", value: `${layer}.${head}`, label: `layer ${layer + 1}, ${name}` });
    return element("label", { kind: "head", title: `layer ${layer + 1}, ${name}` }, input, canvas);
  }

  // What a piece attends to, or in encoder-decoder attention what attends to a piece of the source: [button, weight].
  links(side, place) {
    const { queries, of } = this.attention[this.kind];
    const [layer, head] = this.head;
    const source = this.pieces(this.sides.source);
    const target = this.pieces(this.sides.target); // <s> first: the keys of the decoder
    if (this.kind === "cross" && side === "source")
      return target.slice(1, queries + 1).map((button, query) => [button, of(layer, head, query, place)]);
    if (this.kind === "cross" && place >= 0) return source.map((button, key) => [button, of(layer, head, place, key)]);
    if (this.kind === "encoder" && side === "source") return source.map((button, key) => [button, of(layer, head, place, key)]);
    if (this.kind === "decoder" && side === "target" && place >= 0)
      return target.slice(0, place + 1).map((button, key) => [button, of(layer, head, place, key)]);
    return [];
  }

  point(piece) {
    for (const strip of Object.values(this.sides))
      for (const other of this.pieces(strip)) {
        other.style.removeProperty("--weight");
        other.classList.remove("on");
        other.lastChild.textContent = "";
      }
    byId("says").textContent = "\u00a0";
    if (!piece) return;
    piece.classList.add("on");
    const side = this.sides.source.contains(piece) ? "source" : "target";
    const links = this.links(side, Number(piece.dataset.place));
    for (const [button, weight] of links) {
      button.style.setProperty("--weight", colour(weight));
      if (weight >= SHOWN) button.lastChild.textContent = Math.round(100 * weight);
    }
    byId("says").textContent = this.sentence(piece, side, links);
  }

  sentence(piece, side, links) {
    const own = quoted(piece.firstChild.textContent);
    if (!links.length) return `${own} has no weights in ${this.kind} attention.`;
    const most = [...links].sort((one, other) => other[1] - one[1]).slice(0, NAMED).filter(([, weight]) => weight >= SHOWN);
    const named = most.map(([button, weight]) => `${quoted(button.firstChild.textContent)} ${percent(weight)}`).join(", ");
    if (!named) return `No weight of ${own} reaches 1 %.`;
    return this.kind === "cross" && side === "source" ? `${own} is attended to by ${named}.` : `${own} attends to ${named}.`;
  }
}

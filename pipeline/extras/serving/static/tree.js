// The beam as a tree: a column of hypotheses for each step, the most probable at the top.

import { byId, element, isMark, percent, plain, quoted, roving, written } from "./elements.js";

const WIDTH = 104; // of a node, in pixels
const GAP = 26; // between two columns, for the edges
const ROW = 31;
const HEAD = 22; // for the number of the step
const SVG = "http://www.w3.org/2000/svg";

export class Tree {
  constructor(goOn) {
    this.box = byId("tree");
    this.box.addEventListener("click", (event) => {
      const node = this.nodeOf(event.target);
      if (node) goOn(this.ids(node));
    });
    for (const kind of ["focusin", "pointerover"]) this.box.addEventListener(kind, (event) => this.describe(this.nodeOf(event.target)));
    roving(this.box, ".node", (button, key) => this.next(this.nodes.get(button), key)?.button);
    this.clear();
  }

  clear() {
    this.nodes = new Map(); // by button
    this.columns = [];
    this.edges = document.createElementNS(SVG, "svg");
    this.tree = element("div", { kind: "tree" }, this.edges);
    this.box.replaceChildren(this.tree);
    byId("detail").textContent = "Point at a hypothesis, or reach it with Tab and the arrow keys.";
    const root = { step: 0, row: 0, children: [], piece: "<s>", fate: "kept", probability: 1, log_prob: 0 };
    this.columns.push([root]);
    this.place(root, "start");
    root.button.tabIndex = 0;
  }

  add({ candidates }) {
    const step = this.columns.length;
    const before = this.columns[step - 1];
    this.columns.push(candidates.map((candidate, row) => ({ ...candidate, step, row, parent: before[candidate.parent], children: [] })));
    this.tree.append(Object.assign(element("span", { kind: "step", text: step }), { style: `left:${this.left(step)}px;width:${WIDTH}px` }));
    for (const node of this.columns[step]) {
      node.parent.children.push(node);
      this.place(node, `step ${step}`);
      node.edge = this.edges.appendChild(document.createElementNS(SVG, "path"));
      const [x, y, toX, toY] = [this.left(step) - GAP, this.top(node.parent) + 12, this.left(step), this.top(node) + 12];
      node.edge.setAttribute("d", `M${x} ${y}C${x + GAP / 2} ${y} ${toX - GAP / 2} ${toY} ${toX} ${toY}`);
      node.edge.setAttribute("class", node.fate);
    }
    const rows = Math.max(...this.columns.map((column) => column.length));
    this.tree.style.width = `${this.left(step) + WIDTH}px`;
    this.tree.style.height = `${HEAD + rows * ROW}px`;
    this.edges.setAttribute("width", this.left(step) + WIDTH);
    this.edges.setAttribute("height", HEAD + rows * ROW);
    this.box.scrollLeft = this.box.scrollWidth;
  }

  left(step) {
    return step ? 58 + GAP + (step - 1) * (WIDTH + GAP) : 0;
  }

  top(node) {
    return HEAD + node.row * ROW;
  }

  place(node, where) {
    const label = `${where}: ${isMark(node.piece) ? node.piece : plain(node.piece)}, ${percent(node.probability)}, ${node.fate}`;
    node.button = element("button", { kind: `node ${node.fate}`, type: "button", tabindex: -1, label: node.step ? label : "start" }, written(node.piece));
    if (node.step) node.button.append(element("small", { text: percent(node.probability) }));
    node.button.style.left = `${this.left(node.step)}px`;
    node.button.style.top = `${this.top(node)}px`;
    node.button.style.width = `${node.step ? WIDTH : 58}px`;
    this.nodes.set(node.button, node);
    this.tree.append(node.button);
  }

  // Marks the hypotheses of the translation and returns to the first step.
  finish(ids) {
    this.box.scrollLeft = 0;
    let node = this.columns[0][0];
    const mark = () => [node.button, node.edge].forEach((part) => part?.classList.add("best"));
    for (const token of [...ids, 3]) {
      mark();
      const found = node.children.find((child) => child.token === token);
      if (!found) return;
      node = found;
    }
    mark();
  }

  nodeOf(target) {
    return this.nodes.get(target.closest?.(".node"));
  }

  ids(node) {
    return node.parent ? [...this.ids(node.parent), node.token] : [];
  }

  pieces(node) {
    return node.parent ? [...this.pieces(node.parent), node.piece] : [];
  }

  next(node, key) {
    const column = this.columns[node.step];
    if (key === "ArrowUp") return column[node.row - 1];
    if (key === "ArrowDown") return column[node.row + 1];
    if (key === "ArrowLeft") return node.parent;
    if (key === "ArrowRight") return node.children.find((child) => child.button.classList.contains("best")) || node.children[0];
    if (key === "Home") return this.columns[0][0];
    if (key === "End") return this.columns[this.columns.length - 1][0];
    return null;
  }

  describe(node) {
    if (!node) return;
    const before = node.parent ? this.pieces(node.parent).join("").replaceAll("▁", " ").trim() : "";
    if (!node.step) return byId("detail").replaceChildren("The start of every hypothesis. Enter searches without a choice.");
    byId("detail").replaceChildren(
      `Step ${node.step}, ${node.row + 1} of ${this.columns[node.step].length}, ${node.fate}: `,
      element("b", { dir: "auto", text: `${before} ${quoted(node.piece)}`.trim() }),
      ` has probability ${percent(node.probability)} here; the log-probability of the hypothesis is ${node.log_prob.toFixed(2).replace("-", "−")}.`,
    );
  }
}

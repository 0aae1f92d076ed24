// The page: a text is searched by POST /trace, sentence by sentence. The answer is a line of JSON for each step.

import { Attention } from "./attention.js";
import { byId, element, percent, quoted, written } from "./elements.js";
import { Tree } from "./tree.js";

const END = 3; // the id of </s>
let running = null; // the search whose answer is being read
let all = []; // the sentences of the text that is on the page: {sentence, before, source, steps, leader, found, milliseconds}
let shown = null; // the sentence whose search is on the page

const attention = new Attention(showAlternatives);
const tree = new Tree((prefix) => isBusy() || search(shown.sentence, prefix, shown));

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const line of parts) yield JSON.parse(line);
  }
}

// Search a text or, from a `prefix`, one of the sentences that are on the page.
async function search(input, prefix = [], again = null) {
  running?.abort();
  const own = (running = new AbortController());
  begin(input, again);
  try {
    const body = JSON.stringify({ text: input, prefix });
    const answer = await fetch("trace", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal: own.signal });
    if (!answer.ok) throw new Problem(await reason(answer));
    let started = performance.now();
    for await (const event of lines(answer.body)) {
      if (own !== running) return;
      receive(event, again, performance.now() - started);
      if (event.ids) started = performance.now();
    }
    if (!shown?.found) throw new Problem("The answer ended early. Is the server still running?");
  } catch (error) {
    if (own !== running || error.name === "AbortError") return;
    fail(error instanceof Problem ? error.message : "The server does not answer. Is it still running?");
  } finally {
    if (own === running) busy(false);
  }
}

class Problem extends Error {}

// Why an answer is an error. Those of a proxy are no JSON.
const reason = async (answer) => (await answer.json().catch(() => ({}))).error ?? `The server answers with status ${answer.status}.`;

function begin(input, again) {
  if (!again) {
    tree.clear();
    byId("beam").hidden = true;
    byId("words").hidden = true;
    [all, shown] = [[], null];
  }
  byId("notice").textContent = "";
  byId("facts").textContent = "";
  byId("translation").classList.remove("empty");
  byId("free").hidden = true;
  byId("alternatives").hidden = true;
  busy(true);
  draw();
}

const isBusy = () => document.body.classList.contains("busy"); // a click would drop the sentences that are not yet searched

function busy(is) {
  document.body.classList.toggle("busy", is);
  byId("translation").ariaBusy = is;
  byId("submit").textContent = is ? "Translating…" : "Translate";
}

function receive(event, again, milliseconds) {
  if (event.error) throw new Problem(event.error);
  if (event.source) {
    shown = { sentence: event.sentence, before: again ? again.before : event.before, source: event.source, steps: [], leader: "" };
    if (again) all[all.indexOf(again)] = shown;
    else all.push(shown);
    byId("notice").textContent ||= event.warning ?? "";
    tree.clear();
    byId("beam").hidden = false;
  } else if (event.candidates) {
    shown.steps.push(event);
    shown.leader = event.leader;
    tree.add(event);
  } else {
    shown.found = event;
    shown.leader = event.text;
    shown.milliseconds = milliseconds;
    finish();
  }
  draw();
}

// The translation. Each sentence of several is a button that shows its search.
function draw() {
  const parts = all.map((each) => {
    if (all.length === 1) return [each.before, each.leader];
    const button = element("button", { kind: "sentence", type: "button", text: each.leader });
    if (each === shown) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(each));
    return [each.before, button];
  });
  byId("translation").replaceChildren(...parts.flat());
}

// Show the search of a sentence that has been translated.
function choose(each) {
  if (isBusy() || !each.found) return;
  shown = each;
  byId("alternatives").hidden = true;
  tree.clear();
  each.steps.forEach((step) => tree.add(step));
  finish();
  draw();
  byId("translation").querySelector("[aria-current]").focus();
}

function finish() {
  const { found, source, steps, milliseconds } = shown;
  byId("words").hidden = false;
  attention.show(source, found);
  tree.finish(found.ids);
  byId("free").hidden = !found.forced;
  const score = found.score.toFixed(2).replace("-", "−");
  const place = all.length > 1 ? `Sentence ${all.indexOf(shown) + 1} of ${all.length}: ` : "";
  byId("facts").textContent = `${place}${found.ids.length} pieces, ${steps.length} steps, score ${score}, ${Math.round(milliseconds)} ms`;
  if (found.forced) byId("target").querySelector(`[data-place="${Math.min(found.forced, found.pieces.length) - 1}"]`).focus();
}

function fail(message) {
  byId("notice").textContent = message;
  if (!byId("translation").textContent) {
    byId("translation").textContent = "No translation.";
    byId("translation").classList.add("empty");
  }
}

function showAlternatives(place) {
  const found = shown?.found;
  const position = found?.alternatives[place];
  if (!position || isBusy()) return;
  const chosen = place < found.ids.length ? found.ids[place] : END;
  byId("alternatives-title").textContent = `Alternatives to ${quoted(found.pieces[place])}, piece ${place + 1}`;
  byId("choices").replaceChildren(...position.map((each) => element("li", {}, choice(each, place, each.token === chosen))));
  byId("alternatives").hidden = false;
  byId("choices").querySelector("button").focus();
  byId("close").onclick = () => close(place);
}

function choice({ token, piece, probability }, place, current) {
  const bar = element("span", { kind: "bar" });
  bar.style.setProperty("--weight", probability);
  const name = written(token === END ? "</s> (end)" : piece);
  name.className = "name";
  const button = element("button", { kind: "choice", type: "button" }, name, bar, element("span", { kind: "number", text: percent(probability) }));
  if (current) button.setAttribute("aria-current", "true");
  button.addEventListener("click", () => search(shown.sentence, [...shown.found.ids.slice(0, place), token], shown));
  return button;
}

function close(place) {
  byId("alternatives").hidden = true;
  byId("target").querySelector(`[data-place="${place}"]`).focus();
}

function translateInput() {
  const input = byId("text").value;
  if (input.trim()) return search(input);
  byId("notice").textContent = "Type a sentence first.";
  byId("text").focus();
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translateInput();
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  translateInput();
});
byId("free").addEventListener("click", () => search(shown.sentence, [], shown));
byId("alternatives").addEventListener("keydown", (event) => {
  const buttons = [...byId("choices").querySelectorAll("button")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") byId("close").click();
  if (!step) return;
  event.preventDefault();
  const at = buttons.indexOf(document.activeElement);  // -1 on the button `close`, which is before the first
  buttons[(Math.max(at, step < 0 ? 0 : -1) + step + buttons.length) % buttons.length].focus();
});

async function introduce() {
  const model = await (await fetch("model")).json();
  const names = new Intl.DisplayNames("en", { type: "language" });
  const named = (code) => { try { return names.of(code); } catch { return code; } };
  document.title = byId("name").textContent = model.name;
  const languages = model.languages?.map(named).join(" → ");
  const size = model.parameters >= 1e6 ? `${(model.parameters / 1e6).toFixed(1)}M parameters` : `${Math.round(model.parameters / 1e3)}k parameters`;
  byId("about").textContent = [languages, size, `${model.layers} layers of ${model.heads} heads`, `beam ${model.beam}`]
    .filter(Boolean).map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
  if (model.languages) {
    byId("text").lang = byId("source").lang = model.languages[0];
    byId("translation").lang = byId("target").lang = model.languages[1];
  }
  for (const text of model.examples) {
    const button = element("button", { type: "button", text, dir: "auto" });
    button.addEventListener("click", () => {
      byId("text").value = text;
      search(text);
    });
    byId("examples").append(button);
  }
  byId("examples").hidden = !model.examples.length;
}

introduce().catch(() => fail("The server does not answer. Is it still running?"));

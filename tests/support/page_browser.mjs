// A browser reduced to what the page's script uses: elements that keep what they are told, and one
// source of events. Usage: node page_browser.mjs PAGE_JS < STATES
//
// STATES is a JSON list of what the server sends, one event after the other, or the text "lost". The
// view of the cluster gets one of them as the answer each time it asks.
// Prints the document's title, and what each element that has an identifier shows at the end: its
// text, the number of its children, and its attributes.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

class FakeElement {
  constructor(name) {
    this.name = name;
    this.attributes = {};
    this.children = [];
    this.listeners = {};
    this.ownText = "";
    this.value = "";
    this.checked = true;
  }

  setAttribute(name, value) {
    if (name.startsWith("on") || name === "style") throw new Error(`forbidden by the policy: ${name}`);
    if (String(value).includes("NaN") || value === undefined) throw new Error(`${name} is ${value}`);
    this.attributes[name] = String(value);
    if (name === "id") elements.set(value, this);
  }

  set className(value) {
    this.attributes.class = value;
  }

  get textContent() {
    return this.ownText + this.children.map((child) => child.textContent).join("");
  }

  set textContent(value) {
    this.ownText = String(value);
    this.children = [];
  }

  append(...children) {
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.textContent = "";
    this.append(...children);
  }

  addEventListener(kind, listener) {
    this.listeners[kind] = listener;
  }
}

const elements = new Map();
let source = null;

globalThis.document = {
  title: "",
  createElement: (name) => new FakeElement(name),
  createElementNS: (_, name) => new FakeElement(name),
  getElementById: (id) => {
    if (!elements.has(id)) throw new Error(`the page has no element ${id}`);
    return elements.get(id);
  },
};
globalThis.EventSource = class extends FakeElement {
  constructor(url) {
    super(url);
    source = this;
  }
};

const script = process.argv[2];
const html = readFileSync(script.replace("page.js", "index.html").replace("cluster.js", "cluster.html"), "utf8");
for (const [, id] of html.matchAll(/id="([^"]+)"/g)) {
  elements.set(id, new FakeElement(id));
}
const states = JSON.parse(readFileSync(0, "utf8"));
let again = null;
globalThis.fetch = async () => {
  const state = states.shift();
  return { ok: state !== "lost", status: 503, json: async () => state };
};
globalThis.setInterval = (look) => {
  again = look;
};
await import(pathToFileURL(script));
while (again && states.length > 0) await again();
for (const state of states) {
  if (state === "lost") source.listeners.error();
  else source.listeners.message({ data: JSON.stringify(state) });
}
const shown = [...elements].map(([id, one]) => [
  id,
  { text: one.textContent, children: one.children.length, ...(one.hidden ? { hidden: true } : {}), ...one.attributes },
]);
console.log(JSON.stringify({ documentTitle: document.title, ...Object.fromEntries(shown) }));

"use strict";

// The page: what it has been given, where the slider is, and what is drawn of that.

const DASHES = { "-": [], "--": [7, 4], "-.": [8, 3, 2, 3], ":": [2, 3] };
const POLL_MS = 1000, PLAY_MS = 60, MOST_KEPT = 120;
const byId = (id) => document.getElementById(id);

// An address that ends with #60 shows round 60.
const ASKED = /^#\d{1,12}$/.test(window.location.hash) ? Number(window.location.hash.slice(1)) : null;

const shown = {
  run: JSON.parse(byId("data").textContent),
  at: ASKED, // the round of the slider; null follows the run
  playing: null,
  version: 0,
  layout: null,
  arrangements: new Map(),
};

function lastRound() {
  return Math.max(0, ...shown.run.systems.map((one) => one.course.rounds.at(-1) ?? one.round));
}

function present() { return shown.at === null ? lastRound() : Math.min(shown.at, lastRound()); }

/** The index of the last of some rounds that is not after one; 0 if all are. */
function upTo(rounds, round) {
  let found = 0;
  rounds.forEach((one, i) => { if (one <= round) found = i; });
  return found;
}

function overlayAt(system, round) {
  const found = system.overlays.filter((one) => one.round <= round);
  return found.length ? found.at(-1) : system.overlays[0] ?? null;
}

function element(name, text, parent, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

/** What there is to choose of arrangements, which depends on what studies say of nodes. */
function layouts() {
  const found = new Set();
  for (const system of shown.run.systems) {
    for (const overlay of system.overlays) Object.keys(overlay.places).forEach((one) => found.add(one));
  }
  return [...found, ...(found.size ? [] : [NUMBER]), SPRINGS];
}

/** All measures of all systems, each once, the population first. */
function measures() {
  const found = new Map([["population", { label: "nodes up", kind: "count", meaning: "" }]]);
  for (const system of shown.run.systems) {
    for (const curve of system.course.curves) found.set(curve.key, curve);
  }
  return found;
}

function lineOf(system, key) {
  const values = key === "population"
    ? system.course.population
    : system.course.curves.find((one) => one.key === key)?.values;
  if (!values) return null;
  const looks = { colour: system.colour, dashes: DASHES[system.dashes] ?? [] };
  return { rounds: system.course.rounds, values, ...looks };
}

/** Make what is missing of the page for the systems and measures that there are. */
function build() {
  byId("title").textContent = shown.run.title;
  byId("following").hidden = !shown.run.live;
  const names = layouts();
  if (byId("layout").childElementCount !== names.length) {
    byId("layout").replaceChildren();
    for (const name of names) {
      const words = { [SPRINGS]: "pulled by their links", [NUMBER]: "by number" }[name];
      element("option", words ?? `by ${name}`, byId("layout"), { value: name });
    }
    shown.layout = names.includes(shown.layout) ? shown.layout : names[0];
    byId("layout").value = shown.layout;
  }
  byId("colours").replaceChildren();
  for (const system of shown.run.systems) {
    const key = element("span", null, byId("colours"), { class: "key" });
    const styles = { "-": "solid", "--": "dashed", "-.": "dashed", ":": "dotted" };
    const line = element("i", null, key);
    line.style.borderTopColor = system.colour;
    line.style.borderTopStyle = styles[system.dashes];
    key.append(system.name);
  }
  for (const system of shown.run.systems) {
    const id = `overlay-${system.name}`;
    if (system.overlays.length && !byId(id)) {
      const figure = element("figure", null, byId("overlays"));
      element("h2", system.name, figure);
      element("canvas", null, figure, { id, role: "img", "aria-label": `Overlay of ${system.name}` });
      element("figcaption", "", figure);
      shown.arrangements.set(system.name, new Arrangement());
    }
  }
  for (const [key, about] of shown.run.systems.length ? measures() : []) {
    const id = `chart-${key}`;
    if (byId(id)) continue;
    const figure = element("figure", null, byId("charts"));
    element("h2", about.label[0].toUpperCase() + about.label.slice(1), figure);
    element("canvas", null, figure, { id, role: "img", "aria-label": `${about.label} by round` });
    element("figcaption", about.meaning, figure);
  }
  byId("arranged").hidden = !byId("overlays").childElementCount;
}

function drawOverlays(round) {
  let moves = false;
  for (const system of shown.run.systems) {
    const overlay = overlayAt(system, round);
    const canvas = byId(`overlay-${system.name}`);
    if (!overlay || !canvas) continue;
    const arrangement = shown.arrangements.get(system.name);
    const layout = layouts().includes(shown.layout) ? shown.layout : SPRINGS;
    const places = arrangement.places(overlay, layout);
    if (layout === SPRINGS && arrangement.moves) { arrangement.step(); moves = true; }
    drawOverlay(canvas, overlay, places, layout !== SPRINGS);
    describe(canvas.nextSibling, overlay);
  }
  if (moves) window.requestAnimationFrame(() => drawOverlays(present()));
}

/** The words below an overlay: how much of it is drawn, and what the colours are. */
function describe(caption, overlay) {
  caption.replaceChildren();
  const count = (number) => number.toLocaleString("en");
  const all = overlay.nodes.length === overlay.nodes_in_all;
  const part = all
    ? `${count(overlay.nodes_in_all)} nodes, ${count(overlay.links_in_all)} links`
    : `${count(overlay.nodes.length)} of ${count(overlay.nodes_in_all)} nodes, those near each other; ` +
      `${count(overlay.links_in_all)} links in all`;
  caption.append(`After round ${count(overlay.round)}: ${part}. `);
  overlay.kinds.forEach((kind, i) => {
    const key = element("span", null, caption, { class: "key" });
    element("i", null, key).style.borderTopColor = LINK_COLOURS[i % LINK_COLOURS.length];
    key.append(kind);
  });
  const hue = Object.keys(overlay.places).pop();
  if (hue) caption.append(`Nodes are coloured by ${hue}, from dark to light.`);
}

function drawCharts(round) {
  for (const [key, about] of measures()) {
    const lines = shown.run.systems.map((one) => lineOf(one, key)).filter((one) => one !== null);
    drawChart(byId(`chart-${key}`), lines, about.kind, round, lastRound());
  }
}

function drawValues(round) {
  const table = byId("values");
  table.tHead.replaceChildren();
  table.tBodies[0].replaceChildren();
  const head = element("tr", null, table.tHead);
  element("th", "measure", head);
  for (const system of shown.run.systems) element("th", system.name, head);
  for (const [key, about] of measures()) {
    const row = element("tr", null, table.tBodies[0], { "data-measure": key });
    element("td", about.label, row);
    for (const system of shown.run.systems) {
      const line = lineOf(system, key);
      const value = line && line.values.length ? line.values[upTo(line.rounds, round)] : null;
      element("td", told(value, about.kind), row);
    }
  }
}

/** The words behind the slider. */
function moment(round) {
  const longest = shown.run.systems.reduce(
    (one, other) => (other.course.rounds.length > one.course.rounds.length ? other : one));
  const { rounds, time_s: times } = longest.course;
  const time = rounds.length ? times[upTo(rounds, round)] : 0;
  const mean = longest.course.rounds_a_point > 1
    ? `, means of ${longest.course.rounds_a_point} rounds` : "";
  return `round ${round.toLocaleString("en")}, ${Math.round(time).toLocaleString("en")} s${mean}`;
}

function draw() {
  const round = present();
  byId("facts").textContent = shown.run.facts + status();
  byId("values").hidden = byId("controls").hidden = !shown.run.systems.length;
  if (!shown.run.systems.length) return;
  byId("slider").max = lastRound();
  byId("slider").value = round;
  byId("at").textContent = moment(round);
  drawOverlays(round);
  drawCharts(round);
  drawValues(round);
}

function status() {
  if (!shown.run.live) return "";
  if (shown.run.ended) return "; the run has ended";
  if (shown.lost) return "; no word from the run any more";
  const told = shown.run.systems.map((one) => `${one.name} ${one.round} of ${one.rounds} rounds`);
  return told.length ? `; ${told.join(", ")}` : "; preparing, a first run compiles";
}

function stopPlaying() {
  window.clearInterval(shown.playing);
  shown.playing = null;
  byId("play").textContent = "Play";
}

function play() {
  if (shown.playing !== null) { stopPlaying(); return; }
  byId("play").textContent = "Pause";
  byId("follow").checked = false;
  shown.at = present() >= lastRound() ? 0 : present();
  const step = Math.max(1, Math.round(lastRound() / 300));
  shown.playing = window.setInterval(() => {
    shown.at = Math.min(lastRound(), shown.at + step);
    draw();
    if (shown.at >= lastRound()) stopPlaying();
  }, PLAY_MS);
}

/** Take what the run has sent; overlays seen before are kept, every second one if they are many. */
function take(run) {
  for (const system of run.systems) {
    const before = shown.run.systems.find((one) => one.name === system.name)?.overlays ?? [];
    const fresh = system.overlays.filter((one) => !before.some((old) => old.round === one.round));
    const kept = before.length + fresh.length > MOST_KEPT
      ? before.filter((_, i) => i % 2 === 0) : before;
    system.overlays = [...kept, ...fresh];
  }
  shown.run = run;
}

async function poll() {
  try {
    const answer = await fetch(`state?have=${shown.version}`, { cache: "no-store" });
    if (answer.status === 200) {
      const told = await answer.json();
      shown.version = told.version;
      take(told.run);
      build();
      draw();
    }
    shown.lost = false;
  } catch {
    shown.lost = !shown.run.ended;
    byId("facts").textContent = shown.run.facts + status();
  }
  if (!shown.run.ended) window.setTimeout(poll, POLL_MS);
}

byId("slider").addEventListener("input", (event) => {
  stopPlaying();
  shown.at = Number(event.target.value);
  byId("follow").checked = false;
  draw();
});
byId("follow").addEventListener("change", (event) => {
  shown.at = event.target.checked ? null : present();
  draw();
});
byId("layout").addEventListener("change", (event) => { shown.layout = event.target.value; draw(); });
byId("play").addEventListener("click", play);
window.addEventListener("resize", draw);
byId("follow").checked = shown.at === null;
build();
draw();
if (shown.run.live) poll();

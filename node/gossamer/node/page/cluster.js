// Draws the cluster as the node knows it, asked for anew every other second. Everything shown is set
// as text or as a plain attribute, never as markup: names and figures come from other members.

import { CENTRE, RADIUS, apart, dotRadius, labels, loadBar, point, short, span } from "./layout.js";

const SVG = "http://www.w3.org/2000/svg";
const EVERY_MS = 2000;
const BARS = 10;

// What is known of members that tell no figures.
const OF_BROKERS = new Set(["name", "state", "version", "addresses"]);

const COLUMNS = [
  ["name", "", (one) => one.name || one.key.slice(0, 8)],
  ["state", "", (one) => one.state],
  ["trouble", "", troubleOf],
  ["version", "", (one) => one.version || "\u2013"],
  ["up", "number", (one) => span(one.report?.uptime_s)],
  ["position", "number", (one) => (one.report?.arc ? one.report.position.toFixed(3) : "\u2013")],
  ["delivered/s", "number", (one) => short(one.report?.delivered)],
  ["published/s", "number", (one) => short(one.report?.published)],
  ["dropped/s", "number", (one) => short(one.report?.dropped)],
  ["sent B/s", "number", (one) => short(one.report?.sent_bytes)],
  ["queued B", "number", (one) => short(one.report?.queued_bytes)],
  ["subscriptions", "number", (one) => short(one.report?.subscriptions)],
  ["addresses", "", (one) => one.addresses.join(" ")],
];

const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, text = null, space = null) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

const drawn = (name, attributes, text = null) => element(name, attributes, text, SVG);

function troubleOf(one) {
  if (!one.report) return one.state === "alive" ? "no answer" : "";
  return [...one.report.overload, ...one.report.troubles].join(", ");
}

/** The members that have a place on the ring and said so; brokers have none. */
function placed(view) {
  return view.members
    .filter((one) => one.report && view.wanted.length > 0)
    .map((one) => ({ ...one, position: one.report.position, links: ["ring"] }));
}

function drawRing(view) {
  const [first, ...others] = placed(view);
  byId("map").hidden = first === undefined;
  if (first === undefined) return;
  const state = apart({ ...first, arc_start: first.report.arc_start, peers: others });
  const everybody = [state, ...state.peers];
  const size = dotRadius(everybody.length);
  byId("ring-base").replaceChildren(drawn("circle", { class: "circle", cx: CENTRE, cy: CENTRE, r: RADIUS }));
  const highest = Math.max(...view.wanted, 1);
  byId("ring-wanted").replaceChildren(
    ...view.wanted.map((count, i) => {
      const bar = loadBar((i + 0.5) / view.wanted.length, count, highest);
      const made = drawn("line", { class: "load", "stroke-width": 10, ...bar });
      made.append(drawn("title", {}, `${count} subscriptions`));
      return made;
    }),
  );
  byId("ring-members").replaceChildren(
    ...everybody.map((one, i) => {
      const at = point(one.position);
      const kind = one.report.overload.length > 0 ? "dot fault" : i === 0 ? "self" : "dot linked";
      const made = drawn("circle", { class: kind, cx: at.x, cy: at.y, r: size });
      made.append(drawn("title", {}, `${one.name || one.key}: ${short(one.report.delivered)} delivered/s`));
      return made;
    }),
  );
  byId("ring-labels").replaceChildren(
    ...labels(state).map((label) =>
      drawn(
        "text",
        { class: label.own ? "label own" : "label", x: label.x, y: label.y + 4, "text-anchor": label.anchor },
        label.text,
      ),
    ),
  );
  byId("ring-words").textContent = `The identifier ring with ${everybody.length} members; the table lists them.`;
}

function drawBars(id, entries) {
  const highest = Math.max(...entries.map(([, value]) => value), 1e-9);
  byId(id).replaceChildren(
    ...entries.map(([name, value]) => {
      const row = element("div", { role: "listitem" });
      row.append(
        element("span", { title: name }, name),
        element("progress", { max: highest, value, "aria-hidden": "true" }),
        element("span", {}, short(value)),
      );
      return row;
    }),
  );
}

function mostOf(view, figure) {
  const found = view.members
    .filter((one) => one.report)
    .map((one) => [one.name || one.key, one.report[figure]]);
  return found.sort((a, b) => b[1] - a[1]).slice(0, BARS);
}

function drawTable(view) {
  byId("rows").replaceChildren(
    ...view.members.map((one) => {
      const row = element("tr");
      const member = one.report ? { ...one, report: { ...one.report, arc: view.wanted.length > 0 } } : one;
      const shown = COLUMNS.filter((_, i) => !heads[i].hidden);
      row.append(...shown.map(([, kind, text]) => element("td", { class: kind }, text(member))));
      return row;
    }),
  );
  const all = Object.values(view.states).reduce((sum, count) => sum + count, 0);
  byId("shown").textContent = `${view.members.length} shown of ${all} met`;
}

function draw(view) {
  const [own] = view.members;
  byId("who").textContent = own.name || own.key.slice(0, 8);
  const isBroker = view.role === "broker";
  byId("summary").textContent = isBroker
    ? `${view.known} members met; brokers tell each other no figures`
    : `${view.answered} of ${view.known} members answered (${view.asked} were asked)`;
  byId("page").className = isBroker ? "broker" : "";
  COLUMNS.forEach(([title], i) => {
    heads[i].hidden = isBroker && !OF_BROKERS.has(title);
  });
  byId("troubles").hidden = view.overloaded.length === 0;
  byId("troubles").textContent = `overloaded: ${view.overloaded.join(", ")}`;
  drawRing(view);
  drawBars("versions", Object.entries(view.versions));
  drawBars("states", Object.entries(view.states));
  drawBars("delivered", mostOf(view, "delivered"));
  drawBars("sent", mostOf(view, "sent_bytes"));
  drawTable(view);
}

function tell(words, kind) {
  byId("connection").textContent = words;
  byId("connection").className = kind;
}

async function look() {
  try {
    const answer = await fetch("cluster.json");
    if (!answer.ok) throw new Error(answer.status);
    draw(await answer.json());
    tell("live", "live");
  } catch {
    tell("connection lost, trying again", "lost");
  }
}

const heads = COLUMNS.map(([title, kind]) => element("th", { scope: "col", class: kind }, title));
byId("columns").append(...heads);
await look();
setInterval(look, EVERY_MS);

// Draws the state that the peer sends every second. Everything shown is set as text or as a plain
// attribute, never as markup: names come from other peers.

import {
  LINKS,
  CENTRE,
  RADIUS,
  apart,
  arc,
  choosePeers,
  chord,
  dotRadius,
  labels,
  linkCounts,
  loadBar,
  point,
  short,
  span,
  trend,
} from "./layout.js";

const SVG = "http://www.w3.org/2000/svg";
const REMEMBERED = 60;
const BARS = 10;

// Of a broker, which has no ring and no rounds, only what brokers have is shown.
const OF_BROKERS = new Set(["queued frames", "queued bytes", "longest queue", "subscriptions", "routing table"]);
const BROKER_COLUMNS = new Set(["key", "name", "state", "round trip", "queued"]);

const TILES = [
  ["delivered", "events/s", (state) => state.rates.delivered],
  ["published", "events/s", (state) => state.rates.published],
  ["forwarded", "events/s", (state) => state.rates.forwarded],
  ["dropped", "per s", (state) => state.rates.dropped],
  ["received", "bytes/s", (state) => state.rates.received_bytes],
  ["sent", "bytes/s", (state) => state.rates.sent_bytes],
  ["queued frames", "", (state) => state.queues.frames],
  ["queued bytes", "", (state) => state.queues.bytes],
  ["longest queue", "bytes", (state) => state.queues.longest_bytes],
  ["load", "events/round", (state) => state.load],
  ["subscriptions", "", (state) => state.subscriptions],
  ["routing table", "entries", (state) => state.routing_entries],
];

const COLUMNS = [
  { title: "key", value: (peer) => peer.key, text: (peer) => peer.key, kind: "key" },
  { title: "name", value: (peer) => peer.name, text: (peer) => peer.name },
  { title: "links", value: (peer) => peer.links.join(", "), text: (peer) => peer.links.join(", ") },
  { title: "state", value: stateOf, text: stateOf },
  number("position", (peer) => peer.position, (value) => value.toFixed(4)),
  number("load", (peer) => peer.load, short),
  number("round trip", (peer) => peer.round_trip_s, span),
  number("in/s", (peer) => peer.received_per_s, short),
  number("out/s", (peer) => peer.sent_per_s, short),
  number("queued", (peer) => peer.queued_bytes, short),
  number("heard", (peer) => peer.heard_s, (value) => (value === null ? span(value) : `${span(value)} ago`)),
];

const byId = (id) => document.getElementById(id);
const hidden = new Set();
const history = new Map(TILES.map(([title]) => [title, []]));
const tiles = new Map();
const sorting = { column: COLUMNS[0], descending: false };
let latest = null;

function number(title, value, format) {
  return { title, value, text: (peer) => format(value(peer)), kind: "number" };
}

function stateOf(peer) {
  return peer.connected ? "connected" : "known";
}

function element(name, attributes = {}, text = null, space = null) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

const drawn = (name, attributes, text = null) => element(name, attributes, text, SVG);
const classOf = (link) => link.replace(" ", "-");

function drawRing(told) {
  const state = apart(told);
  const size = dotRadius(state.peers.length);
  const highest = Math.max(state.load, ...state.peers.map((peer) => peer.load), 0);
  byId("ring-base").replaceChildren(
    drawn("circle", { class: "circle", cx: CENTRE, cy: CENTRE, r: RADIUS }),
    drawn("path", { class: "arc", d: arc(state.arc_start, state.position) }),
  );
  byId("ring-chords").replaceChildren(...chords(state));
  byId("ring-loads").replaceChildren(
    ...[state, ...state.peers].map((peer) =>
      drawn("line", {
        class: "load",
        "stroke-width": Math.min(3, size),
        ...loadBar(peer.position, peer.load, highest),
      }),
    ),
  );
  byId("ring-peers").replaceChildren(
    ...state.peers.map((peer) => dot(peer, size)),
    circle("self", state.position, size + 3, "this peer"),
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
  byId("ring-words").textContent =
    `The identifier ring with this peer at ${told.position.toFixed(3)} and ` +
    `${state.peers.length} of ${state.known_peers} known peers; the table below lists them.`;
}

function chords(state) {
  // The faint ones first, so that the others lie above them.
  return [...LINKS].reverse().flatMap((link) =>
    hidden.has(link)
      ? []
      : state.peers
          .filter((peer) => peer.links.includes(link))
          .map((peer) =>
            drawn("path", { class: `chord ${classOf(link)}`, d: chord(state.position, peer.position) }),
          ),
  );
}

function dot(peer, size) {
  const linked = peer.links.length > 0 ? " linked" : "";
  const gone = peer.connected || peer.links.length > 0 ? "" : " gone";
  const words = `${peer.name || peer.key}: ${peer.links.join(", ") || "known"}, load ${short(peer.load)}`;
  return circle(`dot${linked}${gone}`, peer.position, size, words);
}

function circle(kind, position, radius, words) {
  const at = point(position);
  const made = drawn("circle", { class: kind, cx: at.x, cy: at.y, r: radius });
  made.append(drawn("title", {}, words));
  return made;
}

function makeLegend() {
  for (const link of LINKS) {
    const label = element("label");
    const box = element("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(link);
      else hidden.add(link);
      if (latest) drawRing(latest);
    });
    const sample = drawn("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" });
    sample.append(drawn("path", { class: `chord ${classOf(link)}`, d: "M 1 5 H 33" }));
    label.append(box, sample, element("span", {}, link), element("b", { id: `count-${classOf(link)}` }));
    byId("legend").append(label);
  }
}

function makeTiles() {
  for (const [title, unit] of TILES) {
    const box = element("div");
    const value = element("dd");
    const picture = drawn("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    const line = drawn("polyline", { class: "trend" });
    picture.append(line);
    box.append(element("dt", {}, unit ? `${title}, ${unit}` : title), value, picture);
    byId("tiles").append(box);
    tiles.set(title, { box, value, line });
  }
}

function drawTiles(state) {
  for (const [title, , read] of TILES) {
    const values = history.get(title);
    values.push(read(state));
    if (values.length > REMEMBERED) values.shift();
    tiles.get(title).value.textContent = short(values.at(-1));
    tiles.get(title).line.setAttribute("points", trend(values, REMEMBERED));
  }
}

function drawBars(id, entries, nothing) {
  const highest = Math.max(...entries.map(([, value]) => value), 1e-9);
  const rows = entries.map(([name, value]) => {
    const row = element("div", { role: "listitem" });
    row.append(
      element("span", { title: name }, name),
      element("progress", { max: highest, value, "aria-hidden": "true" }),
      element("span", {}, short(value)),
    );
    return row;
  });
  byId(id).replaceChildren(...(rows.length ? rows : [element("p", { class: "quiet" }, nothing)]));
}

function drawChanges(changes) {
  const lines = changes.map((one) => {
    const at = new Date(one.at * 1000).toLocaleTimeString();
    const why = one.cause ? ` (${one.cause})` : "";
    return element("li", {}, `${at} ${one.name || one.key} ${one.change}${why}`);
  });
  byId("changes").replaceChildren(...lines.reverse());
}

function makeColumns() {
  for (const column of COLUMNS) {
    const head = element("th", { scope: "col", class: column.kind ?? "" });
    const button = element("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      sorting.descending = sorting.column === column ? !sorting.descending : column.kind === "number";
      sorting.column = column;
      drawTable();
    });
    head.append(button);
    column.head = head;
    byId("columns").append(head);
  }
  byId("filter").addEventListener("input", drawTable);
}

function drawTable() {
  if (!latest) return;
  for (const column of COLUMNS) {
    const order = sorting.descending ? "descending" : "ascending";
    column.head.setAttribute("aria-sort", column === sorting.column ? order : "none");
  }
  const chosen = choosePeers(latest.peers, byId("filter").value, sorting.column.value, sorting.descending);
  byId("rows").replaceChildren(
    ...chosen.map((peer) => {
      const row = element("tr");
      const shown = COLUMNS.filter((column) => !column.head.hidden);
      row.append(...shown.map((column) => element("td", { class: column.kind ?? "" }, column.text(peer))));
      return row;
    }),
  );
  byId("shown").textContent = `${chosen.length} shown of ${latest.known_peers} known`;
}

function suit(state) {
  const isBroker = state.role === "broker";
  byId("page").className = isBroker ? "broker" : "";
  byId("peers-title").textContent = isBroker ? "Neighbours" : "Peers";
  byId("filter").setAttribute("placeholder", isBroker ? "key or name" : "key, name or link");
  for (const [title, tile] of tiles) tile.box.hidden = isBroker && !OF_BROKERS.has(title);
  for (const column of COLUMNS) column.head.hidden = isBroker && !BROKER_COLUMNS.has(column.title);
}

function identityOf(state) {
  const rounds = state.role === "broker" ? "broker" : `round ${state.round}, one every ${span(state.round_s)}`;
  return (
    `key ${state.key} \u00b7 cluster ${state.cluster_name || state.cluster.slice(0, 16)} \u00b7 ${rounds} \u00b7 ` +
    `up ${span(state.uptime_s)} \u00b7 applications: ${state.clients}`
  );
}

function draw(state) {
  latest = state;
  suit(state);
  const name = state.name || state.key.slice(0, 8);
  document.title = `${name} \u2013 gossamer`;
  byId("title").textContent = name;
  byId("identity").textContent = identityOf(state);
  const troubles = state.troubles ?? [];
  byId("troubles").hidden = troubles.length === 0;
  byId("troubles").textContent = troubles.join(" \u00b7 ");
  byId("version").textContent = `gossamer ${state.version}`;
  for (const [link, count] of Object.entries(linkCounts(state.peers))) {
    byId(`count-${classOf(link)}`).textContent = count;
  }
  if (state.role !== "broker") drawRing(state);
  drawTiles(state);
  const members = Object.entries(state.members ?? {}).filter(([, count]) => count > 0);
  drawBars("members", members, "nobody");
  drawChanges(state.changes ?? []);
  const dropped = Object.entries(state.dropped).filter(([, count]) => count > 0);
  drawBars("dropped", dropped.sort((a, b) => b[1] - a[1]), "nothing");
  const loads = state.peers.map((peer) => [peer.name || peer.key, peer.load]);
  drawBars("loads", loads.sort((a, b) => b[1] - a[1]).slice(0, BARS), "no peer is known");
  drawTable();
}

function tell(words, kind) {
  const status = byId("connection");
  if (status.textContent !== words) status.textContent = words;
  status.className = kind;
}

makeLegend();
makeTiles();
makeColumns();
const events = new EventSource("events");
events.addEventListener("message", (event) => {
  tell("live", "live");
  draw(JSON.parse(event.data));
});
events.addEventListener("error", () => tell("connection lost, trying again", "lost"));

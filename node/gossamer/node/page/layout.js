// Where things stand on the page: pure functions of the state, without a browser.

export const CENTRE = 240;
export const RADIUS = 160;
export const LINKS = ["ring", "small-world", "friend", "finger", "host", "guest", "random view"];

// Peers that stand closer than this, as a share of the ring, are drawn this far apart.
const APART = 0.028;
const LABELS = 24;
const LABEL_GAP = 15;
const LETTER = 7;
const LONGEST_LOAD = 34;

/** The point at a fraction of the ring; 0 is at the top, and it goes clockwise. */
export function point(fraction, radius = RADIUS) {
  const angle = 2 * Math.PI * fraction - Math.PI / 2;
  return { x: CENTRE + radius * Math.cos(angle), y: CENTRE + radius * Math.sin(angle) };
}

/** An arc of the ring, clockwise from one fraction to another, as an SVG path. */
export function arc(from, to) {
  const width = (((to - from) % 1) + 1) % 1;
  const start = point(to - width);
  const end = point(to);
  const large = width > 0.5 ? 1 : 0;
  return `M ${pair(start)} A ${RADIUS} ${RADIUS} 0 ${large} 1 ${pair(end)}`;
}

/** A link between two places on the ring: the nearer they are, the flatter it bends. */
export function chord(from, to) {
  const distance = Math.abs(((to - from + 1.5) % 1) - 0.5);
  const middle = point(from + ((to - from + 1.5) % 1 - 0.5) / 2, RADIUS * (1 - 2 * distance));
  return `M ${pair(point(from))} Q ${pair(middle)} ${pair(point(to))}`;
}

/**
 * The state with every peer where it is drawn: in the order of the ring, none on top of another,
 * and nobody moved without need. Hot places of the ring crowd otherwise, since peers move there.
 */
export function apart(state) {
  const all = [state, ...state.peers].map((peer) => ({ peer, at: peer.position }));
  all.sort((a, b) => a.at - b.at || compare(a.peer.key, b.peer.key));
  const gap = Math.min(APART, 0.8 / all.length);
  // The ring is cut open at its widest gap, which crowds hardly reach.
  const widths = all.map(({ at }, i) => (i + 1 < all.length ? all[i + 1].at : all[0].at + 1) - at);
  const first = (widths.indexOf(Math.max(...widths)) + 1) % all.length;
  const line = [...all.slice(first), ...all.slice(0, first).map((one) => ({ ...one, at: one.at + 1 }))];
  const drawn = spread(line.map(({ at }) => at), gap);
  const places = new Map(line.map(({ peer }, i) => [peer, ((drawn[i] % 1) + 1) % 1]));
  const before = all.find(({ peer }) => Math.abs(peer.position - state.arc_start) < 1e-9);
  return {
    ...state,
    position: places.get(state),
    arc_start: before ? places.get(before.peer) : state.arc_start,
    peers: state.peers.map((peer) => ({ ...peer, position: places.get(peer) })),
  };
}

/** Ascending values, moved until they are ``gap`` apart, each crowd around its own middle. */
function spread(values, gap) {
  const crowds = [];
  for (const value of values) {
    let crowd = { sum: value, count: 1 };
    while (crowds.length > 0 && begin(crowd, gap) < begin(crowds.at(-1), gap) + crowds.at(-1).count * gap) {
      const previous = crowds.pop();
      crowd = { sum: crowd.sum + previous.sum, count: crowd.count + previous.count };
    }
    crowds.push(crowd);
  }
  const moved = crowds.flatMap((crowd) =>
    Array.from({ length: crowd.count }, (_, i) => begin(crowd, gap) + i * gap),
  );
  // Nor may the last come round the ring to the first.
  return moved.map((value, i) => Math.min(value, moved[0] + 1 - (moved.length - i) * gap));
}

/** Where the first of a crowd stands, so that its middle is where the middle of its members is. */
function begin({ sum, count }, gap) {
  return sum / count - ((count - 1) * gap) / 2;
}

/** How large the dots of so many peers may be without hiding each other. */
export function dotRadius(peers) {
  return Math.min(7, Math.max(2.5, (2 * Math.PI * RADIUS) / Math.max(peers, 1) / 3));
}

/** The bar of a peer's load, outside the ring; its length is a share of the highest load. */
export function loadBar(position, load, highest) {
  const share = highest > 0 ? Math.min(load / highest, 1) : 0;
  const inner = point(position, RADIUS + 12);
  const outer = point(position, RADIUS + 12 + LONGEST_LOAD * share);
  return { x1: inner.x, y1: inner.y, x2: outer.x, y2: outer.y };
}

/** Labels that do not overlap: our own first, then linked peers, as many as there is room for. */
export function labels(state) {
  const own = { text: state.name || state.key.slice(0, 8), position: state.position, own: true };
  const linked = state.peers.filter((peer) => peer.links.some((link) => link !== "random view"));
  const others = linked.length > 0 ? linked : state.peers;
  const placed = [];
  for (const one of [own, ...others.map(labelOf)]) {
    const at = point(one.position, RADIUS + 18 + LONGEST_LOAD);
    const free = placed.every(
      (other) =>
        Math.abs(other.y - at.y) >= LABEL_GAP ||
        Math.abs(other.x - at.x) >= LETTER * Math.max(other.text.length, one.text.length),
    );
    if (free && placed.length < LABELS) {
      placed.push({ ...one, x: at.x, y: at.y, anchor: anchor(at.x) });
    }
  }
  return placed;
}

/** How many links there are of each type. */
export function linkCounts(peers) {
  return Object.fromEntries(
    LINKS.map((link) => [link, peers.filter((peer) => peer.links.includes(link)).length]),
  );
}

/** A line through values, in a box of width 100 and height 20; a flat one if nothing changes. */
export function trend(values, capacity) {
  const highest = Math.max(...values, 1e-9);
  return values
    .map((value, i) => {
      const x = (100 * (capacity - values.length + i)) / Math.max(capacity - 1, 1);
      return `${x.toFixed(1)},${(19 - (18 * value) / highest).toFixed(1)}`;
    })
    .join(" ");
}

/** The peers that match what was typed, in the order that was chosen. */
export function choosePeers(peers, typed, column, descending) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = peers.filter((peer) => {
    const text = `${peer.key} ${peer.name} ${peer.links.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const sign = descending ? -1 : 1;
  return matching.sort((a, b) => sign * compare(column(a), column(b)) || compare(a.key, b.key));
}

/** A number as people read it: three digits, and a letter for thousands. */
export function short(number) {
  if (number === null || number === undefined) return "\u2013";
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(number) >= size * 0.9995) return digits(number / size) + letter;
  }
  return digits(number);
}

/** A time span in the unit that suits it. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "\u2013";
  if (seconds < 1) return `${digits(seconds * 1000)} ms`;
  if (seconds < 120) return `${digits(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function digits(number) {
  return String(Number(number.toPrecision(3)));
}

function labelOf(peer) {
  return { text: peer.name || peer.key.slice(0, 8), position: peer.position, own: false };
}

function anchor(x) {
  if (Math.abs(x - CENTRE) < 30) return "middle";
  return x < CENTRE ? "end" : "start";
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return a < b ? -1 : a > b ? 1 : 0;
}

function pair(at) {
  return `${at.x.toFixed(1)} ${at.y.toFixed(1)}`;
}

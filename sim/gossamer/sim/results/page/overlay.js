"use strict";

// Overlays: nodes on a circle, by what the study says of them, or pulled together by their links.

const LINK_COLOURS = ["#2b2f36", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#0072b2"];
const SPRINGS = "springs", NUMBER = "number";
const STEPS = 260;

/** A colour from a place from 0 to 1: a scale from dark blue by green to yellow. */
function hueOf(place) {
  const scale = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.max(0, Math.min(1, place)) * (scale.length - 1);
  const below = Math.min(scale.length - 2, Math.floor(at)), part = at - below;
  const mixed = scale[below].map((one, i) => Math.round(one + part * (scale[below + 1][i] - one)));
  return `rgb(${mixed.join(",")})`;
}

/** Where nodes are drawn, from -1 to 1; springs go on from where nodes were before. */
class Arrangement {
  constructor() {
    this.springs = new Map();
    this.overlay = null;
    this.left = 0;
  }

  /** Places of all nodes of an overlay: [x, y] by index. */
  places(overlay, layout) {
    if (layout === SPRINGS) return this.pulled(overlay);
    const values = layout === NUMBER ? ranksOf(overlay.nodes) : overlay.places[layout];
    return values.map((place) => onCircle(place || 0));
  }

  pulled(overlay) {
    if (this.overlay !== overlay) {
      this.overlay = overlay;
      this.left = STEPS;
      const ranks = ranksOf(overlay.nodes);
      const before = this.springs;
      this.springs = new Map(overlay.nodes.map(
        (node, i) => [node, before.get(node) || onCircle(ranks[i])]));
    }
    const at = overlay.nodes.map((node) => this.springs.get(node));
    const far = Math.max(1e-6, ...at.flat().map(Math.abs));
    return at.map((one) => [one[0] / far, one[1] / far]);
  }

  /** Whether nodes still move. */
  get moves() { return this.left > 0; }

  /** Let links pull and nodes push each other, a little. */
  step() {
    const overlay = this.overlay, nodes = overlay.nodes, count = nodes.length;
    const at = nodes.map((node) => this.springs.get(node));
    const force = at.map(() => [0, 0]);
    const wish = 1.1 / Math.sqrt(Math.max(count, 1));
    // Many links to a node pull no more than a few, or all would be one heap.
    const slack = 2 * Math.max(1, overlay.links.length / 3 / Math.max(count, 1));
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        const dx = at[i][0] - at[j][0], dy = at[i][1] - at[j][1];
        const push = (wish * wish) / (dx * dx + dy * dy + 1e-6);
        force[i][0] += dx * push; force[i][1] += dy * push;
        force[j][0] -= dx * push; force[j][1] -= dy * push;
      }
    }
    for (let k = 0; k < overlay.links.length; k += 3) {
      const i = overlay.links[k], j = overlay.links[k + 1];
      const dx = at[i][0] - at[j][0], dy = at[i][1] - at[j][1];
      const pull = Math.hypot(dx, dy) / wish / slack;
      force[i][0] -= dx * pull; force[i][1] -= dy * pull;
      force[j][0] += dx * pull; force[j][1] += dy * pull;
    }
    const most = 0.1 * (this.left / STEPS);
    for (let i = 0; i < count; i++) {
      const size = Math.hypot(...force[i]) || 1;
      const by = Math.min(size, most) / size;
      at[i][0] += force[i][0] * by;
      at[i][1] += force[i][1] * by;
    }
    let far = 1e-6;
    const middle = [0, 1].map((axis) => at.reduce((sum, one) => sum + one[axis], 0) / (count || 1));
    for (const one of at) {
      one[0] -= middle[0]; one[1] -= middle[1];
      far = Math.max(far, Math.abs(one[0]), Math.abs(one[1]));
    }
    if (far > 1) for (const one of at) { one[0] /= far; one[1] /= far; }
    this.left--;
  }
}

function ranksOf(nodes) { return nodes.map((_, i) => i / Math.max(nodes.length, 1)); }

/** A place from 0 to 1 on the circle, clockwise from the top. */
function onCircle(place) {
  return [Math.sin(2 * Math.PI * place), -Math.cos(2 * Math.PI * place)];
}

/** Draw an overlay: links by kind, nodes by the last of its places. */
function drawOverlay(canvas, overlay, places, curved) {
  const { context, width, height } = fitted(canvas);
  const size = Math.min(width, height) / 2 - 8;
  const x = (one) => width / 2 + size * one[0], y = (one) => height / 2 + size * one[1];
  context.globalAlpha = overlay.links.length > 1500 ? 0.45 : 0.7;
  context.lineWidth = 0.8;
  overlay.kinds.forEach((_, kind) => {
    context.strokeStyle = LINK_COLOURS[kind % LINK_COLOURS.length];
    context.beginPath();
    for (let k = 0; k < overlay.links.length; k += 3) {
      if (overlay.links[k + 2] !== kind) continue;
      const one = places[overlay.links[k]], other = places[overlay.links[k + 1]];
      context.moveTo(x(one), y(one));
      if (curved) {
        // The further apart, the more it is bent towards the middle.
        const far = Math.min(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
        const bent = 0.5 * (1 - 0.5 * far);
        const middle = [bent * (one[0] + other[0]), bent * (one[1] + other[1])];
        context.quadraticCurveTo(x(middle), y(middle), x(other), y(other));
      } else context.lineTo(x(other), y(other));
    }
    context.stroke();
  });
  context.globalAlpha = 1;
  const hues = Object.values(overlay.places).pop();
  context.lineWidth = 0.6;
  context.strokeStyle = "#fff";
  const radius = places.length > 120 ? 3.2 : 4.5;
  places.forEach((one, i) => {
    context.fillStyle = hues ? hueOf(hues[i]) : GREY;
    context.beginPath();
    context.arc(x(one), y(one), radius, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  });
}

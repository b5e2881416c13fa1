"use strict";

// Curves over rounds: gaps where nothing is known, a line where the slider is. Of more rounds than
// there is room for, curves are means over several, in a band from the least to the greatest.

const APART = 4; // pixels between two points of a curve, so that ups and downs stay apart
const INK = "#2b2f36", GREY = "#8a8f98", FAINT = "#e3e6ea";

/** A canvas of as many pixels as the screen has for it, and its context in CSS pixels. */
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** A number as people read it; ratios in per cent. */
function told(value, kind) {
  if (value === null || value === undefined) return "-";
  if (kind === "ratio") return `${Number((100 * value).toPrecision(4))} %`;
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** Places of labels between two numbers: few, and round. */
function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) {
    found.push(at * step + 0); // never -0
  }
  return found;
}

/** The least and greatest value; from 0 unless values are below, or those of no count far from it. */
function bounds(lines, kind) {
  let low = Infinity, high = -Infinity;
  for (const line of lines) {
    for (const value of line.values) {
      if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    }
  }
  if (low > high) return [0, 1];
  if (low >= 0 && (kind === "count" || low < 0.7 * high || low === high)) low = 0;
  if (low === high) high += Math.abs(high) * 0.1 || 1;
  return [low, high + 0.04 * (high - low)];
}

/**
 * A line of so many points at most: means over as many rounds each, with the least and greatest.
 * @returns {rounds, values, low, high, ...looks}; low and high are null where no values were joined
 */
function thinned(line, most) {
  const count = line.values.length;
  const size = Math.ceil(count / Math.max(1, Math.floor(most)));
  if (size <= 1) return { ...line, low: null, high: null };
  const found = { ...line, rounds: [], values: [], low: [], high: [] };
  for (let from = 0; from < count; from += size) {
    const until = Math.min(from + size, count);
    const known = line.values.slice(from, until).filter((value) => value !== null);
    const any = known.length > 0;
    found.rounds.push((line.rounds[from] + line.rounds[until - 1]) / 2);
    found.values.push(any ? known.reduce((sum, value) => sum + value, 0) / known.length : null);
    found.low.push(any ? Math.min(...known) : null);
    found.high.push(any ? Math.max(...known) : null);
  }
  return found;
}

/**
 * Draw lines over rounds.
 * @param lines each {rounds, values, colour, dashes}
 * @param kind how values are printed
 * @param at the round of the slider
 * @param last the last round of the axis
 */
function drawChart(canvas, lines, kind, at, last) {
  const { context, width, height } = fitted(canvas);
  const left = 58, right = width - 8, top = 8, bottom = height - 22;
  const [low, high] = bounds(lines, kind);
  const shown = lines.map((line) => thinned(line, (right - left) / APART));
  const x = (round) => left + (right - left) * (round / Math.max(last, 1));
  const y = (value) => bottom - (bottom - top) * ((value - low) / (high - low));
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = INK;
  context.strokeStyle = FAINT;
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ticks(low, high, 4)) {
    context.beginPath();
    context.moveTo(left, y(value));
    context.lineTo(right, y(value));
    context.stroke();
    context.fillText(told(value, kind), left - 6, y(value));
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const round of ticks(0, Math.max(last, 1), Math.max(2, Math.floor(width / 90)))) {
    if (Number.isInteger(round)) context.fillText(round.toLocaleString("en"), x(round), bottom + 6);
  }
  context.strokeStyle = GREY;
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(left, bottom);
  context.lineTo(right, bottom);
  context.stroke();
  for (const line of shown) if (line.low) drawBand(context, line, x, y);
  for (const line of shown) drawLine(context, line, x, y);
  context.setLineDash([]);
  context.strokeStyle = INK;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x(at), top);
  context.lineTo(x(at), bottom);
  context.stroke();
}

/** The band of a line of `thinned`, broken where nothing is known. */
function drawBand(context, line, x, y) {
  context.fillStyle = line.colour;
  context.globalAlpha = 0.18;
  for (let from = 0; from < line.low.length; from++) {
    if (line.low[from] === null) continue;
    let until = from;
    while (until + 1 < line.low.length && line.low[until + 1] !== null) until++;
    context.beginPath();
    for (let i = from; i <= until; i++) context.lineTo(x(line.rounds[i]), y(line.high[i]));
    for (let i = until; i >= from; i--) context.lineTo(x(line.rounds[i]), y(line.low[i]));
    context.fill();
    from = until;
  }
  context.globalAlpha = 1;
}

/** One line, broken where a value is not known; what stands alone is a dot. */
function drawLine(context, line, x, y) {
  context.strokeStyle = context.fillStyle = line.colour;
  context.lineWidth = 1.7;
  context.setLineDash(line.dashes);
  context.beginPath();
  const known = (i) => i >= 0 && i < line.values.length && line.values[i] !== null;
  for (let i = 0; i < line.values.length; i++) {
    if (!known(i)) continue;
    const place = [x(line.rounds[i]), y(line.values[i])];
    if (known(i - 1)) context.lineTo(...place); else context.moveTo(...place);
    if (!known(i - 1) && !known(i + 1)) context.fillRect(place[0] - 1.5, place[1] - 1.5, 3, 3);
  }
  context.stroke();
}

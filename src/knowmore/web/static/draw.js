// Colours, markers, fields and contours: nothing here knows of models.

// Six colours of Okabe and Ito, which colour-blind people can tell apart, and fourteen that are as far
// from these and each other as could be found, for normal sight and for the common colour deficiencies.
export const COLOURS = [
  '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9', '#6C4884', '#D8CC00', '#906048', '#60E49C',
  '#A80060', '#8478FC', '#902400', '#9CB490', '#6000FC', '#C0CCE4', '#D800C0', '#185448', '#A85484', '#780CA8',
];
const RGB = COLOURS.map((one) => [1, 3, 5].map((i) => parseInt(one.slice(i, i + 2), 16)));
export const SHAPES = ['disc', 'square', 'triangle', 'diamond', 'wedge', 'star', 'plus', 'hexagon'];

export const colour = (slot) => COLOURS[slot % COLOURS.length];
// No two of the first 160 classes share both.
export const shape = (slot) => SHAPES[(slot + Math.floor(slot / COLOURS.length)) % SHAPES.length];

/** The colours of the page, light or dark. @param root the document, or the part that the page is in */
export function theme(root = document) {
  const style = getComputedStyle(root.host ?? document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const paper = of('--field').match(/\w\w/g).map((one) => parseInt(one, 16));
  return { paper, ink: of('--ink'), edge: of('--edge'), dark: of('--dark') === '1' };
}

const corners = (count, turn, radii = [1]) =>
  Array.from({ length: count }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / count;
    const r = radii[i % radii.length];
    return [r * Math.cos(angle), r * Math.sin(angle)];
  });
const UP = -Math.PI / 2;
const OUTLINES = {
  square: corners(4, Math.PI / 4, [1.22]),
  triangle: corners(3, UP, [1.28]),
  diamond: corners(4, 0, [1.28]),
  wedge: corners(3, -UP, [1.28]),
  star: corners(10, UP, [1.4, 0.62]),
  plus: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
  hexagon: corners(6, 0, [1.1]),
};

/** Trace a marker. @param {CanvasRenderingContext2D} pen */
export function trace(pen, name, x, y, r) {
  pen.beginPath();
  if (name === 'disc') {
    pen.arc(x, y, r, 0, 2 * Math.PI);
  } else {
    for (const [u, v] of OUTLINES[name]) pen.lineTo(x + r * u, y + r * v);
    pen.closePath();
  }
}

/** Draw one marker. @param {CanvasRenderingContext2D} pen */
export function marker(pen, slot, x, y, r, look) {
  trace(pen, shape(slot), x, y, r);
  pen.lineJoin = 'round';
  pen.lineWidth = Math.max(r * 0.62, 2);
  pen.strokeStyle = look.edge;
  pen.stroke();
  pen.fillStyle = colour(slot);
  pen.fill();
  // Pale colours are seen on white, and dark ones on black.
  pen.globalAlpha = 0.4;
  pen.lineWidth = Math.max(r * 0.14, 0.7);
  pen.strokeStyle = look.ink;
  pen.stroke();
  pen.globalAlpha = 1;
}

export function ring(pen, x, y, r, look, dashed = false) {
  pen.save();
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  if (dashed) pen.setLineDash([3, 3]);
  pen.lineWidth = 4;
  pen.strokeStyle = look.edge;
  if (!dashed) pen.stroke();
  pen.lineWidth = 1.8;
  pen.strokeStyle = look.ink;
  pen.stroke();
  pen.restore();
}

const kept = new Map();

/** A marker drawn once, to be copied many times: 10,000 of them in a frame. */
export function sprite(slot, r, look, scale, around = '') {
  const key = [slot, r, look.dark, scale, around].join();
  if (!kept.has(key)) {
    const half = Math.ceil(r * 2.6);
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 2 * half * scale;
    const pen = canvas.getContext('2d');
    pen.scale(scale, scale);
    marker(pen, slot, half, half, r, look);
    if (around) ring(pen, half, half, r * 1.95, look, around === 'silent');
    kept.set(key, { canvas, half });
  }
  return kept.get(key);
}

/** A marker as an element of the page. A list has dozens: as canvases they would take long to paint. */
export function swatch(slot) {
  const made = (name, attributes) => {
    const one = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    return one;
  };
  const name = shape(slot);
  const svg = made('svg', { class: 'swatch', viewBox: '-1.67 -1.67 3.34 3.34', 'aria-hidden': 'true', fill: colour(slot) });
  svg.append(name === 'disc' ? made('circle', { r: 1 }) : made('polygon', { points: OUTLINES[name].map(String).join(' ') }));
  return svg;
}

/**
 * The field as a picture of w times h, `finer` times as fine: the colour of the winner in the strength
 * of its lead, half of what its score is above the next. For two classes that is the score itself, as
 * in Fig. 1 of Lütz, Rodner and Denzler; it vanishes at every border.
 *
 * Between cells the score of each class is interpolated; where another wins it is taken for the second.
 * @param {(i: number) => number} slotOf the colour of a class
 */
export function fieldImage(field, slotOf, look, finer = 3) {
  const { w, h, best, score, second, classes } = field;
  const image = new ImageData(finer * w, finer * h);
  const pixels = new Uint32Array(image.data.buffer);
  const inks = classes.map((_, i) => shades(RGB[slotOf(i) % RGB.length], look));
  const [columns, rows] = [between(w, finer), between(h, finer)];
  const width = columns.low.length;
  const leads = score.map((one, i) => one - second[i]);
  for (let j = 0; j < rows.low.length; j += 1) {
    const v = rows.part[j];
    // Rows of the field go up, those of a picture down.
    const line = (rows.low.length - 1 - j) * width;
    for (let i = 0; i < width; i += 1) {
      const u = columns.part[i];
      const a = rows.low[j] * w + columns.low[i];
      const b = a + 1;
      const c = a + w;
      const d = c + 1;
      const wa = (1 - u) * (1 - v);
      const wb = u * (1 - v);
      const wc = (1 - u) * v;
      const wd = u * v;
      let winner = best[a];
      let lead;
      if (winner === best[b] && winner === best[c] && winner === best[d]) {
        lead = wa * leads[a] + wb * leads[b] + wc * leads[c] + wd * leads[d];
      } else {
        const of = (one, at) => (best[at] === one ? score[at] : second[at]);
        let [first, next] = [-Infinity, -Infinity];
        for (const one of new Set([best[a], best[b], best[c], best[d]])) {
          const sum = wa * of(one, a) + wb * of(one, b) + wc * of(one, c) + wd * of(one, d);
          if (sum > first) [first, next, winner] = [sum, first, one];
          else if (sum > next) next = sum;
        }
        lead = first - next;
      }
      pixels[line + i] = (inks[winner] ?? inks[0])[Math.min(Math.max(SHADES * lead / 2, 0), SHADES) | 0];
    }
  }
  return image;
}

const SHADES = 511;

/** A colour from none of it, the paper, to its full strength, as pixels. */
function shades(ink, look) {
  const most = look.dark ? 0.74 : 0.8;
  const pixel = new Uint8ClampedArray(4 * (SHADES + 1));
  for (let i = 0; i <= SHADES; i += 1) {
    const t = most * (i / SHADES) ** 0.9;
    for (let k = 0; k < 3; k += 1) pixel[4 * i + k] = look.paper[k] + t * (ink[k] - look.paper[k]);
    pixel[4 * i + 3] = 255;
  }
  return new Uint32Array(pixel.buffer);
}

/** Which of `count` cells is below each place of a side that is `finer` times as fine, and how far. */
function between(count, finer) {
  const [low, part] = [new Int32Array(finer * count), new Float64Array(finer * count)];
  for (let i = 0; i < low.length; i += 1) {
    const place = Math.min(Math.max((i + 0.5) / finer - 0.5, 0), count - 1);
    low[i] = Math.min(Math.floor(place), Math.max(count - 2, 0));
    part[i] = place - low[i];
  }
  return { low, part };
}

const small = document.createElement('canvas');

/** Draw a field over all of a canvas, or a part of it. @param {CanvasRenderingContext2D} pen */
export function paintImage(pen, image, ...where) {
  [small.width, small.height] = [image.width, image.height];
  small.getContext('2d').putImageData(image, 0, 0);
  pen.drawImage(small, ...where);
}

/**
 * A small map: a field if there is one, and examples.
 * @param {(i: number) => number} slotOf the colour of a class @returns the pen and where places are
 */
export function map(canvas, bounds, points, slotOf, image = null) {
  const side = canvas.clientWidth || 420;
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = canvas.height = side * scale;
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  if (image) paintImage(pen, image, 0, 0, side, side);
  const { x0, x1, y0, y1 } = bounds;
  const place = (i) => [((points.x[i] - x0) / (x1 - x0)) * side, (1 - (points.y[i] - y0) / (y1 - y0)) * side];
  const look = theme(canvas.getRootNode());
  const r = points.x.length > 600 ? 3 : 5;
  for (let i = 0; i < points.x.length; i += 1) {
    const one = sprite(slotOf(points.class[i]), r, look, scale);
    const [x, y] = place(i);
    pen.drawImage(one.canvas, x - one.half, y - one.half, 2 * one.half, 2 * one.half);
  }
  return { pen, place, look };
}

/** The place deepest within what is marked, if there is room for words. @returns {number} or -1 */
export function deepest(marked, w, h) {
  // How many steps it is to what is not marked, or to the edge: first from below, then from above.
  const depth = new Uint16Array(marked.length);
  const inner = (i) => marked[i] && i % w && i % w !== w - 1;
  for (let i = w; i < depth.length - w; i += 1) {
    if (inner(i)) depth[i] = Math.min(depth[i - 1], depth[i - w]) + 1;
  }
  let best = 0;
  for (let i = depth.length - w - 1; i >= w; i -= 1) {
    if (depth[i]) depth[i] = Math.min(depth[i], depth[i + 1] + 1, depth[i + w] + 1);
    if (depth[i] > depth[best]) best = i;
  }
  return depth[best] > 5 ? best : -1;
}

/** Each value as the mean of its neighbourhood, twice: steps of cells become slopes. */
export function smoothed(values, w, h) {
  let from = Float32Array.from(values);
  for (let turn = 0; turn < 2; turn += 1) {
    for (const [step, count, length] of [[1, w, h], [w, h, w]]) {
      const to = new Float32Array(from.length);
      const along = step === 1 ? w : 1;
      for (let j = 0; j < length; j += 1) {
        for (let i = 0; i < count; i += 1) {
          const at = j * along + i * step;
          const before = i ? from[at - step] : from[at];
          const after = i + 1 < count ? from[at + step] : from[at];
          to[at] = (before + 2 * from[at] + after) / 4;
        }
      }
      from = to;
    }
  }
  return from;
}

/**
 * Where values cross a level, by marching squares.
 * @param {(column: number, row: number) => [number, number]} place of the middle of a cell
 * @returns {Path2D}
 */
export function contour(values, w, h, level, place) {
  const path = new Path2D();
  const cut = (a, b) => (level - a) / (b - a);
  for (let j = 0; j + 1 < h; j += 1) {
    for (let i = 0; i + 1 < w; i += 1) {
      const at = j * w + i;
      const a = values[at];
      const b = values[at + 1];
      const c = values[at + w + 1];
      const d = values[at + w];
      if (a > level === b > level && b > level === c > level && c > level === d > level) continue;
      const sides = [];
      if (a > level !== b > level) sides.push([i + cut(a, b), j]);
      if (b > level !== c > level) sides.push([i + 1, j + cut(b, c)]);
      if (d > level !== c > level) sides.push([i + cut(d, c), j + 1]);
      if (a > level !== d > level) sides.push([i, j + cut(a, d)]);
      for (let k = 0; k + 1 < sides.length; k += 2) {
        path.moveTo(...place(...sides[k]));
        path.lineTo(...place(...sides[k + 1]));
      }
    }
  }
  return path;
}

/**
 * Where values are above a level, as strips of a third of a cell.
 * @param {(column: number, row: number) => [number, number]} place of the middle of a cell
 * @returns {Path2D}
 */
export function region(values, w, h, level, place, finer = 3) {
  const path = new Path2D();
  const line = new Float32Array(w);
  for (let strip = 0; strip < finer * (h - 1); strip += 1) {
    const [j, v] = [Math.floor(strip / finer), ((strip % finer) + 0.5) / finer];
    const [from, to] = [strip / finer, (strip + 1) / finer];
    for (let i = 0; i < w; i += 1) line[i] = (1 - v) * values[j * w + i] + v * values[(j + 1) * w + i];
    let begin = line[0] > level ? 0 : -1;
    for (let i = 1; i < w; i += 1) {
      const above = line[i] > level;
      if (above === begin >= 0) continue;
      const end = i - 1 + (level - line[i - 1]) / (line[i] - line[i - 1]);
      if (!above) add(begin, end);
      begin = above ? end : -1;
    }
    if (begin >= 0) add(begin, w - 1);

    function add(left, right) {
      const [x, y] = place(left, to);
      const [across, down] = place(right, from);
      path.rect(x, y, across - x, down - y);
    }
  }
  return path;
}

const hatches = new Map();

/** Slanted lines, for where the model says that it does not know. */
export function hatch(pen, look, scale) {
  const key = [look.ink, look.dark, scale].join();
  if (hatches.has(key)) return hatches.get(key);
  const tile = document.createElement('canvas');
  const size = 9 * scale;
  tile.width = tile.height = size;
  const own = tile.getContext('2d');
  own.strokeStyle = look.ink;
  own.globalAlpha = look.dark ? 0.2 : 0.16;
  own.lineWidth = 1.1 * scale;
  own.beginPath();
  for (const shift of [-size, 0, size]) {
    own.moveTo(shift - 2, size + 2);
    own.lineTo(shift + size + 2, -2);
  }
  own.stroke();
  const pattern = pen.createPattern(tile, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  hatches.set(key, pattern);
  return pattern;
}

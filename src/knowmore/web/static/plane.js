// The plane: click adds, drag moves, right-click or Delete forgets, and the field follows.

import { editSeen, field as askField, get, movedField, post } from './api.js';
import { askClass, element, misleading, percent, plural, sliceOf, UNSEEN } from './page.js';
import { ANY, pickClass } from './choosing.js';
import { contour, deepest, fieldImage, hatch, marker, paintImage, region, ring, smoothed, sprite, swatch, theme } from './draw.js';

const GRID = 96;
const COARSE = 48;
const RADIUS = 6.5;
// Beyond this a fit from scratch, to compare with, is made only if asked for.
const CHECKED = 1200;
// Up to this the field follows while an example is dragged.
const LIVELY = 800;
const LEVELS = [0.2, 0.4, 0.6, 0.8, 0.95];
const SCENES = [['moons', 'Two moons'], ['spiral', 'Spiral'], ['blobs', 'Three blobs'], ['island', 'Unknown island']];
const KEYS = [
  ['click', 'add an example of the current class'],
  ['drag', 'move an example; drag the empty plane to look elsewhere, wheel to zoom'],
  ['1 – 9', 'relabel the chosen example, or choose the class of the next ones'],
  ['N', 'a new class, for the chosen example or the next ones'],
  ANY,
  ['Delete Delete', 'forget the chosen example for ever (or right-click)'],
  ['arrows', 'move the cross; with Shift further'],
  ['Enter', 'choose the example at the cross, or add one there'],
  ['[ ]', 'the example before, the next one'],
  ['M', 'take the chosen example along with the cross; Enter drops it'],
  ['Escape', 'let go'],
  ['V, D, E', 'variance, “I don’t know”, errors'],
  ['C', 'compare with a fit from scratch'],
  ['F', 'see all examples'],
];

const log = { to: (value) => 100 * Math.log10(value), from: (place) => 10 ** (place / 100) };
const short = (value) => (value == null ? '–' : Number(value.toPrecision(3)).toString());

/** @param {any} studio what all views share @returns a view */
export function plane(studio, signal) {
  const look = { now: theme(studio.root) };
  let home = { bounds: studio.state.plane.bounds, forgotten: studio.state.forgotten };
  let bounds = { ...home.bounds };
  let points = { ids: [], x: [], y: [], class: [], wrong: [], silent: [], predicted: [], labels: [] };
  let shown = null; // the field that is painted
  let current = null; // the label that a click gives
  let chosen = null; // an id
  let hover = -1;
  let drag = null; // { index, x, y, moved } or { pan, at }
  let cross = null; // in the plane
  let carried = false;
  let flips = new Map();
  let clicked = null;
  let timer = 0;
  let trying = { busy: false, next: null };
  const layers = { variance: true, unknown: true, errors: true };

  // -- what is on the page ---------------------------------------------------------------------

  const canvas = (name, more = {}) => element('canvas', { class: name, ...more });
  const base = canvas('base', { 'aria-hidden': 'true' });
  const marks = canvas('marks', { 'aria-hidden': 'true' });
  const top = canvas('top', {
    tabindex: 0, role: 'application',
    'aria-label': 'The plane. Arrow keys move a cross, Enter adds or chooses an example, question mark lists all keys.',
  });
  const tip = element('div', { class: 'tip', hidden: true });
  const begin = element('div', { class: 'start', hidden: true });
  const scenes = element('section', { class: 'card', id: 'scenes' }, element('h2', {}, 'Scenes'),
    element('div', { class: 'scenes' }, ...SCENES.map(([name, title]) =>
      element('button', { type: 'button', 'data-scene': name, onclick: () => scene(name, title) }, title))));
  const menu = element('div', { class: 'menu card', role: 'menu', hidden: true });
  const axes = [element('span', { class: 'axis x' }), element('span', { class: 'axis y' })];
  const frame = element('div', { class: 'frame' }, base, marks, top, ...axes, begin, tip, menu);
  const line = element('p', { class: 'line', id: 'line' });
  const figures = element('div', { class: 'figures' });
  const classes = element('div', { class: 'classes', role: 'radiogroup', 'aria-label': 'Class of the next example' });
  const detail = element('div', { class: 'chosen' });
  const detailCard = element('section', { class: 'card', hidden: true }, element('h2', {}, 'Chosen example'), detail);
  const noise = slider('Noise', 'noise', -4, 1, 'How little a single label counts: more noise, smoother borders');
  const width = slider('Length scale', 'length_scale', -3, 1, 'How far an example speaks for what is around it');
  const checks = ['variance', 'unknown', 'errors'].map((name) => check(name));
  const better = element('button', { type: 'button', id: 'better', title: 'Tries other settings on the examples, and keeps those that fit better', onclick: () => studio.tune() }, 'Look for better settings');
  const slice = element('p', { class: 'quiet', id: 'slice', hidden: true });
  const misled = element('div', { class: 'card misled', hidden: true });
  let anyway = false; // whether somebody wants to see a slice that misleads
  const every = element('button', { type: 'button', id: 'all-classes', class: 'all-classes', onclick: any }, element('kbd', {}, 'L'), ' Find a class …');
  const view = element('section', { class: 'plane' },
    element('div', { class: 'stage' }, misled, frame, line, slice),
    element('div', { class: 'panel' },
      element('section', { class: 'card' }, figures),
      element('section', { class: 'card' }, element('h2', {}, 'Classes'), classes,
        element('div', { class: 'row' }, every, element('button', { type: 'button', id: 'new-class', onclick: newClass }, element('kbd', {}, 'N'), ' New class'))),
      detailCard,
      element('section', { class: 'card' }, element('h2', {}, 'Settings'), noise.element, width.element, better),
      element('section', { class: 'card' }, element('h2', {}, 'Layers'), element('div', { class: 'checks' }, ...checks)),
      scenes));

  function check(name) {
    const words = {
      variance: ['Lines of equal doubt', 'V', 'Where the model is as unsure: lines of equal variance'],
      unknown: ['“I don’t know”', 'D', 'Hatched: unlike all that the model has seen'],
      errors: ['Wrong when tested unseen, ringed', 'E', 'What the others would call by another name, had the model not seen it'],
    }[name];
    const box = element('input', { type: 'checkbox', checked: true, onchange: () => { layers[name] = box.checked; paint(); } });
    const label = element('label', { title: words[2] }, box, words[0], element('kbd', {}, words[1]));
    label.box = box;
    return label;
  }

  function slider(title, name, from, to, hint) {
    const input = element('input', { type: 'range', min: 100 * from, max: 100 * to, step: 1, id: `set-${name}`, name });
    const output = element('output', { for: input.id });
    input.addEventListener('input', () => {
      output.textContent = short(log.from(input.value));
      attempt();
    });
    input.addEventListener('change', () => {
      trying.next = null;
      studio.act({ verb: 'settings', [name]: log.from(input.value) }, () => `${title} is ${short(log.from(input.value))}.`);
    });
    const made = element('div', { class: 'slider', title: hint }, element('label', { for: input.id }, title), output, input);
    return {
      element: made,
      input,
      show(value) {
        made.hidden = value == null;
        if (value == null || studio.root.activeElement === input && trying.busy) return;
        input.value = Math.round(log.to(value));
        output.textContent = short(value);
      },
    };
  }

  /** How much of the model the plane shows, and nothing of it where that would mislead. */
  function showSlice({ plane: { slice: part }, features }) {
    const hides = !!part?.misleads && !anyway;
    [misled.hidden, slice.hidden, frame.hidden, line.hidden] = [!hides, !part || hides, hides, hides];
    if (!part) return;
    const hatched = part.hatching_misleads ? ` “Unknown” says little here: ${percent(part.unsure)} of the examples seem unknown at their places in the slice, and are known.` : '';
    slice.textContent = `This is a slice: ${sliceOf(part, features)}. The model answers in it as it answers of the examples themselves for ${percent(part.agreement)} of them.${hatched}`;
    slice.classList.toggle('end', !!part.misleads);
    if (!hides) return;
    misled.replaceChildren(...misleading(part, features, () => { anyway = true; showSlice(studio.state); side = 0; paint(); }));
  }

  // -- places ----------------------------------------------------------------------------------

  // Asked of the page once: to ask again after every change would lay it out again.
  let side = 0;
  const size = () => (side ||= frame.clientWidth);
  const scale = () => Math.min(window.devicePixelRatio || 1, 2);
  const toPixel = (x, y) => [
    ((x - bounds.x0) / (bounds.x1 - bounds.x0)) * size(),
    (1 - (y - bounds.y0) / (bounds.y1 - bounds.y0)) * size(),
  ];
  const toPlane = (px, py) => [
    bounds.x0 + (px / size()) * (bounds.x1 - bounds.x0),
    bounds.y0 + (1 - py / size()) * (bounds.y1 - bounds.y0),
  ];
  const indexOf = (id) => points.ids.indexOf(id);
  const slotAt = (i) => studio.slot(points.labels[points.class[i]]);

  /** The example at a place of the frame, or -1. */
  function at(px, py, reach = radius() + 4.5) {
    let best = -1;
    let nearest = reach ** 2;
    for (let i = points.ids.length - 1; i >= 0; i -= 1) {
      const [x, y] = toPixel(points.x[i], points.y[i]);
      const distance = (x - px) ** 2 + (y - py) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    return best;
  }

  // -- painting --------------------------------------------------------------------------------

  function cleared(one) {
    const pixels = Math.round(size() * scale());
    if (one.width !== pixels) one.width = one.height = pixels;
    const pen = one.getContext('2d');
    pen.setTransform(scale(), 0, 0, scale(), 0, 0);
    pen.clearRect(0, 0, size(), size());
    return pen;
  }

  function paint() {
    paintField();
    paintMarks();
    paintTop();
  }

  function paintField() {
    const pen = cleared(base);
    if (!shown || shown.empty || !size()) return;
    const { w, h } = shown;
    const [left, upper] = toPixel(shown.bounds.x0, shown.bounds.y1);
    const [right, lower] = toPixel(shown.bounds.x1, shown.bounds.y0);
    const image = fieldImage(shown, (i) => studio.slot(shown.classes[i]), look.now);
    paintImage(pen, image, left, upper, right - left, lower - upper);
    // The outermost cells reach to the edge, and so do lines through them.
    const part = (i, count) => (i <= 0 ? 0 : i >= count - 1 ? 1 : (i + 0.5) / count);
    const place = (column, row) => [left + part(column, w) * (right - left), lower - part(row, h) * (lower - upper)];
    if (layers.variance) paintVariance(pen, place);
    if (layers.unknown) paintUnknown(pen, place);
  }

  function paintVariance(pen, place) {
    const most = shown.variance.reduce((a, b) => Math.max(a, b), 0);
    pen.strokeStyle = look.now.ink;
    for (const level of LEVELS) {
      pen.globalAlpha = 0.13 + 0.22 * level;
      pen.lineWidth = 1;
      pen.stroke(contour(shown.variance, shown.w, shown.h, level * most, place));
    }
    pen.globalAlpha = 1;
  }

  function paintUnknown(pen, place) {
    const { w, h, unknown } = shown;
    if (!unknown.includes(1)) return;
    const soft = smoothed(unknown, w, h);
    pen.fillStyle = hatch(pen, look.now, scale());
    pen.fill(region(soft, w, h, 0.5, place));
    pen.strokeStyle = look.now.ink;
    pen.lineWidth = 1.8;
    pen.globalAlpha = 0.8;
    pen.stroke(contour(soft, w, h, 0.5, place));
    pen.globalAlpha = 1;
    const spot = deepest(free(unknown, place), w, h);
    if (spot >= 0) words(pen, 'I don’t know', ...place(spot % w, Math.floor(spot / w)));
  }

  /** What is unknown, but for the places of examples: words would hide them. */
  function free(unknown, place) {
    const found = Uint8Array.from(unknown);
    const { w, h } = shown;
    const [[left, lower], [right, upper]] = [place(0, 0), place(w - 1, h - 1)];
    for (let i = 0; i < points.ids.length; i += 1) {
      const [x, y] = toPixel(points.x[i], points.y[i]);
      const column = Math.round(((x - left) / (right - left)) * w);
      const row = Math.round(((lower - y) / (lower - upper)) * h);
      for (let r = Math.max(row - 2, 0); r <= Math.min(row + 2, h - 1); r += 1) {
        found.fill(0, r * w + Math.max(column - 2, 0), r * w + Math.min(column + 2, w - 1) + 1);
      }
    }
    return found;
  }

  function words(pen, text, x, y) {
    pen.font = 'italic 600 14px system-ui, sans-serif';
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.lineJoin = 'round';
    pen.lineWidth = 5;
    pen.strokeStyle = `rgb(${look.now.paper.join()})`;
    pen.strokeText(text, x, y);
    pen.fillStyle = look.now.ink;
    pen.fillText(text, x, y);
  }

  const radius = () => (points.ids.length > 3000 ? 3 : points.ids.length > 600 ? 4.5 : RADIUS);

  function paintMarks() {
    const pen = cleared(marks);
    const r = radius();
    const hidden = drag?.moved ? drag.index : carried ? indexOf(chosen) : -1;
    for (const ringed of [0, 1]) {
      for (let i = 0; i < points.ids.length; i += 1) {
        const wrong = layers.errors && points.wrong[i] ? 1 : 0;
        if (i === hidden || wrong !== ringed) continue;
        const [x, y] = toPixel(points.x[i], points.y[i]);
        if (x < -20 || y < -20 || x > size() + 20 || y > size() + 20) continue;
        const around = wrong ? 'wrong' : layers.errors && points.silent[i] ? 'silent' : '';
        const one = sprite(slotAt(i), r, look.now, scale(), around);
        pen.drawImage(one.canvas, x - one.half, y - one.half, 2 * one.half, 2 * one.half);
      }
    }
  }

  function paintTop() {
    const pen = cleared(top);
    const i = chosen == null ? -1 : indexOf(chosen);
    for (const [id, to] of flips) {
      const j = indexOf(id);
      if (j < 0) continue;
      const [x, y] = toPixel(points.x[j], points.y[j]);
      ring(pen, x, y, 15, look.now);
      marker(pen, studio.slot(to), x + 11, y - 11, 4.5, look.now);
    }
    if (i >= 0 && !(drag?.moved && drag.index === i) && !carried) {
      const [x, y] = toPixel(points.x[i], points.y[i]);
      halo(pen, x, y);
    }
    if (hover >= 0 && hover < points.ids.length && !drag?.moved) {
      marker(pen, slotAt(hover), ...toPixel(points.x[hover], points.y[hover]), radius() * 1.25, look.now);
    }
    if (drag?.moved && drag.index >= 0) carry(pen, drag.index, toPixel(drag.x, drag.y));
    if (carried && i >= 0 && cross) carry(pen, i, toPixel(...cross));
    if (cross) {
      const [x, y] = toPixel(...cross);
      pen.strokeStyle = look.now.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        pen.moveTo(x + 6 * dx, y + 6 * dy);
        pen.lineTo(x + 18 * dx, y + 18 * dy);
      }
      pen.stroke();
    }
  }

  function halo(pen, x, y) {
    pen.beginPath();
    pen.arc(x, y, radius() * 2.1, 0, 2 * Math.PI);
    pen.lineWidth = 3;
    pen.strokeStyle = getComputedStyle(frame).getPropertyValue('--accent');
    pen.stroke();
  }

  function carry(pen, i, [x, y]) {
    pen.strokeStyle = look.now.ink;
    pen.globalAlpha = 0.5;
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(...toPixel(points.x[i], points.y[i]));
    pen.lineTo(x, y);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    marker(pen, slotAt(i), x, y, radius() * 1.35, look.now);
  }

  // -- loading ---------------------------------------------------------------------------------

  const query = (side = GRID) => ({ ...bounds, w: side, h: side });

  function see(found) {
    shown = found;
    paintField();
    if (clicked == null) return;
    const since = clicked;
    clicked = null;
    requestAnimationFrame(() => performance.measure('click to field', { start: since }));
  }

  /** Edit, and paint the field that came of it: all else is asked for afterwards. */
  async function edit(body) {
    const found = await editSeen(body, query());
    see(found);
    return found.edit;
  }

  /** Whether the field that is painted is that of all that is seen, in this state of the file. */
  const fits = (number) => shown.number === number && shown.w === GRID && !shown.trial && JSON.stringify(shown.bounds) === JSON.stringify(bounds);

  async function load() {
    const first = !shown;
    const [all] = await Promise.all([get('/api/plane/points'), first ? askField(query(COARSE)).then(see) : null]);
    const others = Math.abs(all.ids.length - points.ids.length) > 1;
    points = all;
    if (first) look_again();
    else if (!fits(all.number)) see(await askField(query()));
    // Its words make room for examples.
    else if (others) paintField();
    [hover, tip.hidden, tip.textContent] = [-1, true, ''];
    if (chosen != null && indexOf(chosen) < 0) chosen = null;
    carried &&= chosen != null;
    paintMarks();
    paintTop();
    showLine(shown);
    clearTimeout(timer);
    if (points.ids.length && points.ids.length <= CHECKED) timer = setTimeout(compare, 700);
  }

  function look_again() {
    clearTimeout(look.later);
    look.later = setTimeout(async () => see(await askField(query())), 60);
  }

  /** After something is forgotten the studio chooses anew what is seen at first, and perhaps the plane. */
  function look_home(state) {
    const seen = bounds.x0 == null || JSON.stringify(bounds) === JSON.stringify(home.bounds) || (state.forgotten > home.forgotten && state.plane.by !== 'features');
    home = { bounds: state.plane.bounds, forgotten: state.forgotten };
    if (!seen || JSON.stringify(bounds) === JSON.stringify(home.bounds)) return;
    bounds = { ...home.bounds };
    if (!shown) return;
    paint();
    look_again();
  }

  function showLine({ update_ms: update, refit_ms: refit, difference }) {
    if (update == null) {
      line.textContent = '';
      return;
    }
    const value = (words) => element('b', {}, words);
    const ms = (time) => `${time < 10 ? time.toFixed(1) : Math.round(time)} ms`;
    line.title = 'How long the model took to follow the last edit, and a fit from scratch; how far their scores differ at most';
    line.replaceChildren('update ', value(ms(update)));
    if (refit != null) {
      line.append(', refit ', value(ms(refit)), ', difference ', value(difference ? difference.toExponential(0) : '0'));
    }
  }

  async function compare() {
    if (!points.ids.length) return;
    try {
      const found = await get(`/api/plane/check?${new URLSearchParams(query())}`);
      if (found.number === points.number) showLine(found);
    } catch (error) {
      studio.say(error.message);
    }
  }

  /** The field that a drag would give; nothing is written before the example is dropped. */
  async function imagine(id) {
    if (trying.busy) return;
    trying.busy = true;
    for (let last = null; drag?.moved && last !== `${drag.x} ${drag.y}`;) {
      last = `${drag.x} ${drag.y}`;
      try {
        const found = await movedField({ ids: [id], plane: [[drag.x, drag.y]], ...query(COARSE) });
        if (!drag?.moved) break;
        see(found);
      } catch {
        break;
      }
    }
    trying.busy = false;
  }

  /** The field that the sliders would give; nothing is written before they are let go. */
  async function attempt() {
    trying.next = { noise: log.from(noise.input.value), length_scale: log.from(width.input.value) };
    if (noise.element.hidden) delete trying.next.noise;
    if (width.element.hidden) delete trying.next.length_scale;
    if (trying.busy) return;
    trying.busy = true;
    while (trying.next) {
      const asked = trying.next;
      trying.next = null;
      try {
        see(await askField({ ...query(COARSE), ...asked }));
        showFigures(shown.loo_accuracy, shown.log_evidence, points.ids.length);
      } catch (error) {
        studio.say(error.message);
      }
    }
    trying.busy = false;
  }

  // -- what is shown beside the plane ----------------------------------------------------------

  function showFigures(right, evidence, n) {
    const one = (value, words, id, hint = null) => element('div', { title: hint }, element('strong', { id }, value), element('span', {}, words));
    figures.replaceChildren(
      // Where there is one class, all are right.
      one(percent(studio.state.classes.length > 1 ? right : null), 'right when tested unseen', 'right', UNSEEN),
      one(evidence == null ? '–' : evidence.toFixed(1), 'fit of the settings', 'evidence', 'The log evidence: how probable the labels are with these settings; the larger the better'),
      one(String(n), n === 1 ? 'example' : 'examples', 'count'));
  }

  function changed(state) {
    if (!state.plane.possible) return;
    scenes.hidden = state.plane.by !== 'features';
    showSlice(state);
    look_home(state);
    const all = studio.classes;
    if (!all.some((one) => one.label === current)) current = all[0].label;
    axes.forEach((one, i) => { one.textContent = `${['→', '↑'][i]} ${state.plane.axes[i]}`; });
    showFigures(state.loo_accuracy, state.log_evidence, state.n);
    better.hidden = !state.tunable;
    noise.show(state.settings.noise);
    width.show(state.settings.length_scale);
    begin.hidden = state.n > 0;
    begin.replaceChildren(
      element('strong', {}, `Click anywhere: an example of ${current}`),
      element('span', {}, 'Press 2 for the next class, N for a new one, or choose a scene.'),
      element('span', {}, 'Every click is an exact edit of ', element('code', {}, state.name), '.'));
    showClasses();
    showChosen();
  }

  function showClasses() {
    // Few are found without looking for them.
    every.hidden = studio.classes.length < 10;
    classes.replaceChildren(...studio.classes.map((one, i) => element('button', {
      type: 'button', role: 'radio', 'aria-checked': String(one.label === current),
      tabindex: one.label === current ? 0 : -1, 'data-label': JSON.stringify(one.label),
      onclick: () => choose(one.label), onkeydown: roving,
    },
    i < 9 ? element('kbd', {}, String(i + 1)) : element('span', {}), swatch(one.slot),
    element('span', { class: 'name' }, String(one.label)), element('span', { class: 'count' }, String(one.count)),
    element('span', { class: 'share', title: 'how many the model would name rightly, had it not seen them' }, one.loo_accuracy == null ? '' : `${Math.round(100 * one.loo_accuracy)} %`))));
  }

  function roving(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const all = studio.classes;
    const i = all.findIndex((one) => one.label === current);
    choose(all.at((i + step) % all.length).label);
    classes.querySelector('[aria-checked=true]').focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Any class, of the chosen example or of the next ones. */
  async function any() {
    const id = chosen;
    const i = id == null ? -1 : indexOf(id);
    const label = await pickClass(studio, i < 0 ? { title: 'Class of the next example' } : { title: `What is ${id}?`, except: [points.labels[points.class[i]]] });
    if (label == null) return;
    if (i < 0) takeUp(label);
    else relabel(id, label);
  }

  /** The class of the next examples, which may be new. */
  function takeUp(label) {
    if (!studio.classes.some((one) => one.label === label)) studio.offer(label);
    current = label;
    changed(studio.state);
    studio.say(`The next example is ${label}.`);
    classes.querySelector('[aria-checked=true]')?.scrollIntoView({ block: 'nearest' });
  }

  function choose(label) {
    current = label;
    showClasses();
    studio.say(`The next example is ${label}.`);
  }

  function showChosen() {
    const i = chosen == null ? -1 : indexOf(chosen);
    detailCard.hidden = i < 0;
    detail.replaceChildren();
    if (i < 0) return;
    const others = points.silent[i] ? 'the others say nothing of it' : `the others say ${points.labels[points.predicted[i]]}`;
    detail.replaceChildren(
      element('span', {}, element('b', {}, String(chosen)), ` is ${points.labels[points.class[i]]}; ${others}.`),
      element('div', { class: 'row' },
        element('button', { type: 'button', onclick: () => openMenu(i) }, 'Relabel …'),
        element('button', { type: 'button', class: 'end', onclick: forget },
          studio.armed === chosen ? 'Forget for ever?' : 'Forget')));
  }

  function select(id) {
    chosen = id;
    studio.calm();
    carried = false;
    flips = new Map();
    paintTop();
    showChosen();
  }

  // -- edits -----------------------------------------------------------------------------------

  async function add(x, y) {
    if (current == null) return;
    clicked = performance.now();
    // It is seen at once, and known when the studio has said so.
    let code = points.labels.indexOf(current);
    if (code < 0) code = points.labels.push(current) - 1;
    const parts = { ids: null, x, y, class: code, wrong: 0, silent: 0, predicted: code };
    for (const [name, value] of Object.entries(parts)) points[name].push(value);
    begin.hidden = true;
    requestAnimationFrame(paintMarks);
    const words = (answer) => `Learnt ${answer.ids[0]}, ${current}.`;
    if (await studio.act({ verb: 'add', plane: [[x, y]], y: [current] }, words) || points.ids.at(-1) != null) return;
    for (const name of Object.keys(parts)) points[name].pop();
    paintMarks();
  }

  function move(id, x, y) {
    clicked = performance.now();
    const i = indexOf(id);
    [points.x[i], points.y[i]] = [x, y];
    paintMarks();
    return studio.act({ verb: 'replace', ids: [id], plane: [[x, y]] }, () => `Moved ${id}.`);
  }

  function relabel(id, label) {
    clicked = performance.now();
    closeMenu();
    return studio.act({ verb: 'relabel', ids: [id], y: label }, () => `${id} is ${label} now.`);
  }

  /** The first call asks, the second forgets. */
  function forget() {
    if (chosen == null) return;
    if (!studio.sure(chosen, `Forget ${chosen} for ever?`)) return;
    const id = chosen;
    clicked = performance.now();
    cross = null;
    select(null);
    studio.act({ verb: 'forget', ids: [id], confirm: true }, () => 'Forgotten for ever: 1 example.');
  }

  async function newClass() {
    const label = await askClass(studio);
    if (label == null) return;
    const id = chosen;
    takeUp(label);
    if (id == null) top.focus();
    else relabel(id, label);
  }

  async function scene(name, title) {
    const n = points.ids.length;
    const words = `${plural(n)} will be forgotten for ever, and cannot be brought back.`;
    if (n && !(await studio.ask({ title: `${title} instead of what is here?`, words, yes: 'Forget and begin' }))) return;
    bounds = { x0: -1, x1: 1, y0: -1, y1: 1 };
    await studio.act({ verb: 'scene', name, clear: n > 0 }, () => `${title}.`);
  }

  // -- the menu of an example ------------------------------------------------------------------

  function openMenu(i) {
    select(points.ids[i]);
    const id = chosen;
    const own = points.labels[points.class[i]];
    const others = studio.classes.filter((one) => one.label !== own);
    const items = others.slice(0, 9).map((one) => element('button', {
      type: 'button', role: 'menuitem', onclick: () => relabel(id, one.label),
      onmouseenter: () => preview(id, one.label), onfocus: () => preview(id, one.label),
    }, swatch(one.slot), element('span', { class: 'name' }, `Relabel as ${one.label}`)));
    items.push(element('button', { type: 'button', role: 'menuitem', onclick: () => { closeMenu(); any(); } }, others.length > 9 ? `All ${plural(others.length, 'class', 'classes')} …` : 'Another class …'));
    items.push(element('button', {
      type: 'button', role: 'menuitem', class: 'end', onclick: () => { studio.armed = id; forget(); closeMenu(); },
      onmouseenter: () => preview(id, null), onfocus: () => preview(id, null),
    }, 'Forget for ever'));
    menu.replaceChildren(...items);
    menu.hidden = false;
    tip.hidden = true;
    const [x, y] = toPixel(points.x[i], points.y[i]);
    menu.style.left = `${Math.min(x + 14, size() - menu.offsetWidth - 6)}px`;
    menu.style.top = `${Math.max(6, Math.min(y + 10, size() - menu.offsetHeight - 6))}px`;
    items[0].focus({ preventScroll: true });
  }

  function closeMenu() {
    if (menu.hidden) return;
    menu.hidden = true;
    menu.replaceChildren();
    flips = new Map();
    paintTop();
    top.focus({ preventScroll: true });
  }

  /** Which answers would change, before anything is done. */
  async function preview(id, label) {
    const asked = label == null ? { verb: 'forget', ids: [id] } : { verb: 'relabel', ids: [id], y: label };
    try {
      const found = await post('/api/whatif', asked);
      if (menu.hidden) return;
      flips = new Map(found.flips.map((one) => [one.id, one.to]));
      studio.say(`${label == null ? 'Forgotten' : `As ${label}`}: ${plural(found.flips.length, 'answer')} would change. Right when tested unseen: ${percent(found.accuracy_before)}, then ${percent(found.accuracy_after)}.`);
      paintTop();
    } catch (error) {
      studio.say(error.message);
    }
  }

  menu.addEventListener('keydown', (event) => {
    const items = [...menu.children];
    const i = items.indexOf(studio.root.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items.at((i + step) % items.length).focus();
    else if (event.key === 'Escape') closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // -- the mouse -------------------------------------------------------------------------------

  const place = (event) => {
    const box = top.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  top.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    closeMenu();
    top.setPointerCapture(event.pointerId);
    const [px, py] = place(event);
    const index = at(px, py);
    [drag, cross, carried] = [{ index, from: [px, py], bounds: { ...bounds }, moved: false }, null, false];
    if (index >= 0) select(points.ids[index]);
  });

  top.addEventListener('pointermove', (event) => {
    const [px, py] = place(event);
    if (!drag) {
      const found = at(px, py);
      if (found !== hover) {
        hover = found;
        requestAnimationFrame(paintTop);
      }
      showTip(px, py);
      return;
    }
    const [fx, fy] = drag.from;
    if (!drag.moved) {
      if (Math.hypot(px - fx, py - fy) < 4) return;
      drag.moved = true;
      tip.hidden = true;
      if (drag.index >= 0) paintMarks();
    }
    if (drag.index >= 0) {
      [drag.x, drag.y] = toPlane(px, py);
      requestAnimationFrame(paintTop);
      if (points.ids.length <= LIVELY) imagine(points.ids[drag.index]);
    } else {
      const [dx, dy] = [(px - fx) / size(), (py - fy) / size()];
      const { x0, x1, y0, y1 } = drag.bounds;
      bounds = { x0: x0 - dx * (x1 - x0), x1: x1 - dx * (x1 - x0), y0: y0 + dy * (y1 - y0), y1: y1 + dy * (y1 - y0) };
      requestAnimationFrame(paint);
    }
  });

  top.addEventListener('pointerup', (event) => {
    const was = drag;
    drag = null;
    if (!was || event.button !== 0) return;
    const [px, py] = place(event);
    if (was.moved && was.index >= 0) move(points.ids[was.index], ...toPlane(px, py));
    else if (was.moved) look_again();
    else if (was.index < 0) {
      select(null);
      add(...toPlane(px, py));
    }
  });

  top.addEventListener('pointercancel', () => { drag = null; paint(); });
  top.addEventListener('pointerleave', () => { hover = -1; tip.hidden = true; paintTop(); });

  top.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    const index = at(...place(event));
    if (index >= 0) openMenu(index);
  });
  menu.addEventListener('contextmenu', (event) => event.preventDefault());

  top.addEventListener('wheel', (event) => {
    event.preventDefault();
    zoom(1.0015 ** event.deltaY, toPlane(...place(event)));
  }, { passive: false });

  function zoom(factor, [x, y]) {
    const { x0, x1, y0, y1 } = bounds;
    bounds = { x0: x + (x0 - x) * factor, x1: x + (x1 - x) * factor, y0: y + (y0 - y) * factor, y1: y + (y1 - y) * factor };
    requestAnimationFrame(paint);
    look_again();
  }

  function showTip(px, py) {
    tip.hidden = hover < 0 || !menu.hidden;
    if (tip.hidden) return;
    const said = points.silent[hover] ? 'the others say nothing'
      : points.wrong[hover] ? `the others say ${points.labels[points.predicted[hover]]}` : 'the others agree';
    tip.textContent = `${points.ids[hover] ?? 'new'} · ${points.labels[points.class[hover]]} · ${said}`;
    tip.style.left = `${Math.min(px + 14, size() - tip.offsetWidth - 4)}px`;
    tip.style.top = `${py > size() - 50 ? py - 36 : py + 16}px`;
  }

  // -- the keyboard ----------------------------------------------------------------------------

  const toggles = { v: 0, d: 1, e: 2 };

  function key(event) {
    const name = event.key;
    const lower = name.toLowerCase();
    if (name === 'Delete' || name === 'Backspace') forget();
    else if (name === 'Escape') escape();
    else if (/^[1-9]$/.test(name)) number(name);
    else if (lower === 'n') newClass();
    else if (lower === 'l') any();
    else if (lower in toggles) checks[toggles[lower]].box.click();
    else if (lower === 'c') compare();
    else if (lower === 'f') fit();
    else if (name === '[' || name === ']') step(name === '[' ? -1 : 1);
    else if (lower === 'm' && chosen != null) take();
    else if (name.startsWith('Arrow') && studio.root.activeElement === top) arrow(event);
    else if ((name === 'Enter' || name === ' ') && studio.root.activeElement === top) enter();
    else return false;
    return true;
  }

  function escape() {
    closeMenu();
    cross = null;
    select(null);
    paintMarks();
    studio.say('');
  }

  function number(i) {
    const one = studio.classAt(i);
    if (!one) return;
    if (chosen == null) choose(one.label);
    else relabel(chosen, one.label);
  }

  function step(by) {
    const count = points.ids.length;
    if (!count) return;
    const i = chosen == null ? (by > 0 ? -1 : 0) : indexOf(chosen);
    const next = (i + by + count) % count;
    select(points.ids[next]);
    cross = [points.x[next], points.y[next]];
    paintTop();
    studio.say(`${chosen}, ${points.labels[points.class[next]]}${points.wrong[next] ? ', wrong when tested unseen' : ''}.`);
  }

  function take() {
    const i = indexOf(chosen);
    carried = true;
    cross = [points.x[i], points.y[i]];
    top.focus();
    paintMarks();
    paintTop();
    studio.say(`${chosen} moves with the arrow keys. Enter drops it, Escape leaves it.`);
  }

  function arrow(event) {
    const far = (event.shiftKey ? 0.1 : 0.02);
    const [x, y] = cross ?? toPlane(size() / 2, size() / 2);
    const dx = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    const dy = { ArrowDown: -1, ArrowUp: 1 }[event.key] ?? 0;
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
    cross = [
      clamp(x + dx * far * (bounds.x1 - bounds.x0), bounds.x0, bounds.x1),
      clamp(y + dy * far * (bounds.y1 - bounds.y0), bounds.y0, bounds.y1),
    ];
    paintTop();
  }

  function enter() {
    if (!cross) cross = toPlane(size() / 2, size() / 2);
    if (carried) {
      const id = chosen;
      carried = false;
      move(id, ...cross);
      return;
    }
    const index = at(...toPixel(...cross));
    if (index >= 0 && points.ids[index] !== chosen) {
      select(points.ids[index]);
      studio.say(`${chosen}, ${points.labels[points.class[index]]}. Keys 1 to 9 relabel, M moves, Delete forgets.`);
    } else {
      select(null);
      add(...cross);
    }
  }

  function fit() {
    if (!points.ids.length) return;
    const range = (values) => {
      const [low, high] = values.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
      const room = 0.15 * (high - low) || 1;
      return [low - room, high + room];
    };
    const [[x0, x1], [y0, y1]] = [range(points.x), range(points.y)];
    bounds = { x0, x1, y0, y1 };
    paint();
    look_again();
  }

  // -- light, dark, and the size of the window -------------------------------------------------

  new ResizeObserver(() => {
    side = 0;
    requestAnimationFrame(paint);
  }).observe(frame);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    look.now = theme(studio.root);
    paint();
  }, { signal });

  return {
    name: 'plane', title: 'Plane', shortcut: 'p', element: view, keys: KEYS, possible: (state) => state.plane.possible,
    load, edit, changed, key, armed: showChosen, leave: () => clearTimeout(timer),
  };
}

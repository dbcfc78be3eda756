// The questions: what the model would like to know of a pool, the most useful first; one key answers.

import { get, post } from './api.js';
import { map, ring, swatch } from './draw.js';
import { ANY, keyed, labelButtons, pickClass } from './choosing.js';
import { exhibit } from './example.js';
import { askClass, element, percent, plural, UNSEEN } from './page.js';

const KEYS = [
  ['A', 'accept: it is what the model says'],
  ['1 – 9', 'it is of this class; of many classes the likeliest have a key'],
  ANY,
  ['N', 'it is of a new class'],
  ['X', 'it is not what the model takes it for'],
  ['J', 'skip it for now'],
  ['O', 'open a table without labels'],
];
const short = (value) => String(Number(value.toPrecision(3)));

/** @param {any} studio what all views share @returns a view */
export function questions(studio) {
  let found = { pool: null, question: null, curve: [] };
  let points = null;
  let answering = null; // an id
  let numbered = false; // whether somebody wants to see the numbers
  const skipped = new Set();

  const right = element('strong', { id: 'questions-right' });
  const count = element('span', { id: 'questions-count' });
  const curve = element('figure', { class: 'curve' });
  const coming = element('ol', { class: 'coming', 'aria-label': 'What it may ask next' });
  const file = element('input', { type: 'file', id: 'pool-file', accept: '.csv,.tsv,text/csv', hidden: true, onchange: () => take(file.files[0]) });
  const chooser = element('div', { class: 'row chooser' }, button('O', 'Open a table …', () => file.click()), element('span', { class: 'quiet' }, 'or drop a CSV here'), file);
  const body = element('div', { class: 'doubt card', id: 'question', tabindex: 0, 'aria-label': 'The question' });
  const view = element('section', {
    class: 'inbox questions',
    ondragover: (event) => event.preventDefault(),
    ondrop: (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); },
  }, element('div', { class: 'doubts-side' },
    element('div', { class: 'card' }, element('p', { class: 'count' }, right, element('span', { title: UNSEEN }, ' right when tested on each example unseen'), ' · ', count), curve),
    element('div', { class: 'card coming-card' }, element('h2', {}, 'It may ask next'), coming), chooser), body);

  async function load() {
    const possible = studio.state.plane.possible && !studio.state.plane.slice?.misleads && !studio.state.pictures && studio.state.n > 0;
    const skip = [...skipped];
    try {
      [found, points] = await Promise.all([
        post('/api/question', { skip }), possible ? get('/api/plane/points') : null,
      ]);
    } catch (error) {
      body.replaceChildren(element('h2', {}, 'The model cannot ask'), element('p', {}, error.message));
      throw error;
    }
    show();
  }

  // -- what is shown ---------------------------------------------------------------------------

  function show() {
    const { pool } = found;
    right.textContent = percent(found.curve.at(-1)?.[1]);
    count.textContent = pool ? `${pool.rows - pool.left} of ${pool.rows} answered` : 'no pool yet';
    coming.parentElement.hidden = !found.next?.length;
    coming.replaceChildren(...(found.next ?? []).map((one) => element('li', {},
      element('span', { class: 'name' }, String(one.id)))));
    curve.replaceChildren(...drawn(found.curve));
    showQuestion();
  }

  function showQuestion() {
    const { pool, question: one } = found;
    if (!one) {
      body.replaceChildren(...nothing(pool));
      return;
    }
    const guess = one.chances?.[0]?.label;
    const src = `/api/pool/picture?name=${encodeURIComponent(one.id)}`;
    body.replaceChildren(
      element('h2', {}, 'What is ', element('b', { id: 'question-id' }, String(one.id)), '?'),
      element('p', { id: 'why-this' }, why(one)),
      element('div', { class: 'row answers' },
        guess == null ? null : button('A', `It is ${guess}`, accept, null, one.unknown ? '' : 'primary'),
        ...labelButtons(studio, { give: answer, except: one.refused, likely: likely(one) }),
        button('N', 'New class', newClass), guess == null ? null : button('X', `Not ${guess}`, refuse), button('J', 'Skip', skip)),
      element('div', { class: 'beside' }, exhibit(one.id, one.shown, src), element('div', { class: 'said-of' }, chances(one),
        one.place && points ? element('canvas', { class: 'past', role: 'img', 'aria-label': 'Where it is in the plane' }) : null)),
      numbers(one, pool));
    showPlace(one);
  }

  /** Why it is asked, in words that need no book. */
  function why(one) {
    if (one.criterion == null) return 'The model knows nothing yet: begin anywhere.';
    const strange = one.unknown ? 'It is unlike anything learnt: the model would say “I don’t know”. ' : '';
    const [first, second] = one.chances ?? [];
    const torn = second && second.probability > first.probability / 2 && `The model hesitates between ${first.label} and ${second.label}.`;
    if (one.criterion !== 'reduction' || one.alike == null) return strange || torn || 'It is unlike all that the model knows.';
    const alike = one.alike ? `: it resembles ${plural(one.alike, 'other')} that nobody has labelled.` : `, though no other ${found.pool.pictures ? 'picture' : 'row'} that waits is much like it.`;
    return `Labelling this one would teach the model most${alike} ${strange || torn || ''}`;
  }

  /** The exact numbers behind the words. */
  function numbers(one, pool) {
    const coming = (found.next ?? []).filter((each) => each.drop != null).map((each) => `${each.id} ${short(each.drop)}`);
    const next = coming.length ? [element('p', {}, `Then by ${coming.join(', ')}.`)] : [];
    const drop = one.drop == null ? [] : [element('p', { class: 'falls' }, 'Its label makes the other answers surer, whatever it is: the sum of their variances falls by ', element('strong', { id: 'drop' }, short(one.drop)),
      ` of ${short(one.variance)}${one.settled ? '.' : ', at the length scale of now: the first 128 examples move it.'}`),
    one.alike == null ? null : element('p', {}, `${plural(one.alike, 'row')} would lose a twentieth of ${one.alike === 1 ? 'its' : 'their'} variance or more: these it resembles.`)];
    return element('details', { class: 'quiet', open: numbered, ontoggle: (event) => { numbered = event.target.open; } }, element('summary', {}, 'In numbers'),
      element('p', { id: 'reason' }, `${one.reason}.${found.among < pool.open ? ` Chosen among ${found.among} of ${pool.open} rows.` : ''}`), ...drop, ...next);
  }

  function nothing(pool) {
    if (!pool) return [element('h2', {}, 'What would the model like to know?'), element('p', {},
      'Give it rows without labels: a CSV table with the columns of the model. Open one or drop it here, or start with'),
    element('p', {}, element('code', {}, `knowmore studio ${studio.state.name} --pool TABLE|FOLDER`))];
    if (!pool.left) return [element('h2', {}, 'Every row of the pool has a label'), element('p', {}, 'The model holds all of them.')];
    return [element('h2', {}, `${plural(pool.left, 'row')} skipped`), element('div', { class: 'row' }, button('J', 'Ask about them again', skip))];
  }

  function chances(one) {
    if (!one.chances) return null;
    const rows = one.chances.map(({ label, probability }) => {
      const fill = element('i');
      fill.style.width = `${Math.round(100 * probability)}%`;
      return element('tr', {}, element('th', { scope: 'row' }, String(label)), element('td', {}, element('span', { class: 'bar' }, fill)), element('td', {}, percent(probability)));
    });
    return element('table', { class: 'chances' }, element('caption', { class: 'quiet' }, 'It would say'), element('tbody', {}, ...rows));
  }

  function showPlace(one) {
    const canvas = body.querySelector('canvas.past');
    if (!canvas || !studio.state.plane.bounds) return;
    const { pen, look } = map(canvas, studio.state.plane.bounds, points, (i) => studio.slot(points.labels[i]));
    const { x0, x1, y0, y1 } = studio.state.plane.bounds;
    const [x, y] = [(one.place[0] - x0) / (x1 - x0), 1 - (one.place[1] - y0) / (y1 - y0)];
    ring(pen, x * canvas.clientWidth, y * canvas.clientWidth, 12, look);
  }

  const likely = (one) => (one.chances ?? []).map(({ label }) => label);

  function button(key, words, run, mark = null, kind = '') {
    return element('button', { type: 'button', class: kind, onclick: run }, element('kbd', {}, key), mark, ` ${words}`);
  }

  // -- answers ---------------------------------------------------------------------------------

  async function answer(label) {
    const one = found.question;
    if (!one || one.id === answering) return;
    answering = one.id;
    await studio.act({ verb: 'answer', id: one.id, y: label }, () => `${one.id} is ${label}.`);
    if (answering === one.id) answering = null;
  }

  const accept = () => {
    const [first] = found.question?.chances ?? [];
    if (first) answer(first.label);
  };

  async function newClass() {
    if (!found.question) return;
    const label = await askClass(studio);
    if (label != null) await answer(label);
  }

  async function any() {
    const one = found.question;
    if (!one) return;
    const label = await pickClass(studio, { title: `What is ${one.id}?`, except: one.refused ?? [], likely: likely(one) });
    if (label != null) await answer(label);
  }

  /** It is not what the model takes it for: another guess. */
  async function refuse() {
    const one = found.question;
    const label = one?.chances?.[0]?.label;
    if (label == null) return;
    const failed = await post('/api/refuse', { row: one.id, label }).then(() => null, (error) => error.message);
    await studio.refresh();
    studio.say(failed ?? `${one.id} is not ${label}.`);
  }

  function skip() {
    if (found.question) {
      skipped.add(found.question.id);
      studio.say(`${found.question.id} is skipped.`);
    } else skipped.clear();
    studio.refresh();
  }

  async function take(given) {
    if (!given) return;
    try {
      const { pool } = await post('/api/pool', { name: given.name, text: await given.text() });
      skipped.clear();
      await studio.refresh();
      studio.say(`${plural(pool.rows, 'row')} of ${pool.name} to ask about${pool.unusable ? `; ${pool.unusable} could not be used` : ''}.`);
    } catch (error) {
      studio.say(error.message);
    }
    file.value = '';
  }

  function key(event) {
    const lower = event.key.toLowerCase();
    if (lower === 'j') skip();
    else if (lower === 'a') accept();
    else if (lower === 'n') newClass();
    else if (lower === 'l') any();
    else if (lower === 'x') refuse();
    else if (lower === 'o') file.click();
    else if (/^[1-9]$/.test(event.key)) {
      const { question } = found;
      const one = question && keyed(studio, likely(question), question.refused)[Number(event.key) - 1];
      if (one) answer(one.label);
    } else return false;
    return true;
  }

  return { name: 'questions', title: 'Questions', shortcut: 'q', element: view, keys: KEYS, load, key };
}

/** The learning curve, and the same in words. */
function drawn(curve) {
  const known = curve.filter(([, share]) => share != null);
  if (known.length < 1) return [];
  const [first, last] = [known[0], known.at(-1)];
  const words = known.length > 1 ? `Right when tested unseen: ${percent(first[1])} after ${plural(first[0], 'answer')}, ${percent(last[1])} after ${plural(last[0], 'answer')}.` : 'The learning curve begins with the first answer.';
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const least = Math.min(...known.map(([, share]) => share));
  const low = Math.max(Math.floor(10 * least - 0.5) / 10, 0);
  const x = (k) => 34 + (k - first[0]) / Math.max(last[0] - first[0], 5) * 232;
  const y = (share) => 100 - (share - low) / (1 - low) * 88;
  const lines = [low, (1 + low) / 2, 1].map((share) => svg('g', {}, svg('line', { x1: 34, x2: 268, y1: y(share), y2: y(share), class: 'rule' }),
    svg('text', { x: 30, y: y(share) + 3.5, 'text-anchor': 'end' }, percent(share).replace('.0', ''))));
  const path = svg('polyline', { points: known.map(([k, share]) => `${x(k)},${y(share)}`).join(' '), class: 'path' });
  const end = svg('circle', { cx: x(last[0]), cy: y(last[1]), r: 3.5, class: 'end-point' });
  const ticks = [first[0], last[0]].filter((k, i) => !i || k > first[0]).map((k) => svg('text', { x: x(k), y: 114, 'text-anchor': 'middle' }, String(k)));
  return [svg('svg', { viewBox: '0 0 276 118', role: 'img', 'aria-label': `Learning curve. ${words}` }, ...lines, path, end, ...ticks),
    Object.assign(document.createElement('figcaption'), { className: 'quiet', textContent: words })];
}

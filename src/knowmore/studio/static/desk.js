// The desk: pictures in the cards of their classes, and new ones that wait to be decided upon.

import { bring, get, post } from './api.js';
import { swatch } from './draw.js';
import { element, percent, plural } from './page.js';

const KEYS = [
  ['Arrows, Home, End', 'another picture'],
  ['Space', 'mark it: what follows is for all that are marked'],
  ['1 – 9', 'give it the label of a class'],
  ['A', 'accept what the model says'],
  ['N', 'a class by its name: of the marked ones, or of all that the model does not know'],
  ['Delete', 'dismiss one that waits; twice: forget an example for ever'],
  ['O', 'choose files; or drop or paste pictures'],
  ['Escape', 'choose and mark nothing'],
];
// Pictures that a card shows before it is asked for more.
const SHOWN = 60;

const waits = (one) => one.picture != null;
const keyOf = (one) => (waits(one) ? `picture=${one.picture}` : `id=${encodeURIComponent(JSON.stringify(one.id))}`);
const nameOf = (one) => String(one.id ?? one.name);
const pictureOf = (one) => element('img', { src: `/api/thumbnail?${keyOf(one)}`, alt: '', loading: 'lazy', draggable: 'false' });
/** The label that the model or the others give. */
const said = (one) => (waits(one) ? one.label : one.predicted);

/** What is said of a picture: in a word, and in more. */
function verdict(one) {
  if (!waits(one)) return [String(one.label), one.silent ? 'the others say nothing' : one.wrong ? `the others say ${one.predicted}` : 'the others agree'];
  const chance = one.probability == null ? null : percent(one.probability);
  const spread = one.std == null ? null : `standard deviation ${one.std.toFixed(2)}`;
  const more = [one.unknown ? `at best ${one.label}` : null, chance, spread].filter(Boolean).join(', ');
  return [one.unknown ? 'I don’t know' : String(one.label ?? '?'), more];
}

/** @param {any} studio what all views share @returns a view */
export function desk(studio) {
  let board = { examples: [], waiting: [] };
  let chosen = null; // a key
  let armed = null;
  let dragged = [];
  let asked = 0;
  const marked = new Set();
  const wide = new Set();
  // Tiles stay while pictures move: nothing is loaded twice.
  const tiles = new Map();

  const file = element('input', { type: 'file', multiple: true, accept: 'image/*', onchange: () => upload([...file.files]) });
  const drop = element('label', { class: 'drop' }, file, element('strong', {}, 'Drop, paste or choose pictures'),
    element('span', { class: 'quiet' }, 'Nothing is learnt until you decide.'));
  const queue = element('div', { class: 'queue' });
  const about = element('section', { class: 'card about', 'aria-label': 'The chosen picture' });
  const cards = element('div', { class: 'cards' });
  const body = element('section', { class: 'desk' }, cards, element('div', { class: 'side' }, element('section', { class: 'card' }, drop, queue), about));

  const all = () => [...board.waiting, ...board.examples];
  const now = () => all().find((one) => keyOf(one) === chosen);
  const unknown = () => board.waiting.filter((one) => one.unknown);
  /** What an answer is for: the marked ones, or the chosen one. */
  const targets = () => all().filter((one) => (marked.size ? marked.has(keyOf(one)) : keyOf(one) === chosen));

  async function load() {
    if (!studio.state.pictures) return;
    board = await get('/api/desk');
    const keys = new Set(all().map(keyOf));
    for (const known of [marked, tiles]) for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    if (!keys.has(chosen)) chosen = board.waiting.length ? keyOf(board.waiting[0]) : null;
    armed = null;
  }

  function changed(state) {
    view.tab.hidden = view.tab.disabled = !state.pictures;
    if (!body.hidden) show();
  }

  // -- showing -----------------------------------------------------------------------------------

  function show() {
    const inside = body.contains(document.activeElement);
    queue.replaceChildren(...waiting());
    cards.replaceChildren(...studio.classes.map(card));
    stops();
    showOne();
    if (inside && !body.contains(document.activeElement)) tiles.get(chosen)?.focus({ preventScroll: true });
  }

  function waiting() {
    const [strange, known] = [unknown(), board.waiting.filter((one) => !one.unknown)];
    return [
      ...strange.length ? [element('h3', {}, `I don’t know: ${strange.length}`), list('Pictures that the model does not know', strange),
        button('N', `New class from ${strange.length === 1 ? 'this' : 'these'}`, () => named(strange), 'primary')] : [],
      ...known.length ? [element('h3', {}, `Named by the model: ${known.length}`), list('Pictures that the model has named', known)] : [],
    ];
  }

  function card(one, i) {
    const mine = board.examples.filter((each) => each.label === one.label);
    const shown = wide.has(one.slot) ? mine : mine.slice(0, SHOWN);
    const over = (event) => {
      if (!dragged.length) return;
      event.preventDefault();
      if (made.classList.contains('over')) return;
      preview(one.label, dragged);
      made.classList.add('over');
    };
    const made = element('section', {
      class: 'card', 'data-class': String(one.label), 'aria-label': String(one.label), ondragover: over,
      ondrop: (event) => { if (dragged.length) { event.preventDefault(); give(() => one.label, dragged); } },
    },
    element('h2', {}, swatch(one.slot), element('span', { class: 'name' }, String(one.label)), i < 9 ? element('kbd', {}, String(i + 1)) : null,
      element('span', { class: 'count' }, plural(one.count, 'picture')), element('span', { class: 'share', title: 'Right if unseen' }, percent(one.loo_accuracy))),
    shown.length ? list(`${one.label}: ${plural(one.count, 'picture')}`, shown) : null,
    shown.length < mine.length ? button(null, `${mine.length - shown.length} more`, () => { wide.add(one.slot); show(); }) : null);
    return made;
  }

  const list = (label, some) => element('div', { class: 'tiles', role: 'listbox', 'aria-multiselectable': 'true', 'aria-label': label }, ...some.map(tile));

  function button(key, words, run, kind = '', hint = null) {
    const on = hint ? { onmouseenter: hint, onfocus: hint, onmouseleave: forgetHints, onblur: forgetHints } : {};
    return element('button', { type: 'button', class: kind, onclick: run, ...on }, key ? element('kbd', {}, key) : null, ...[words].flat());
  }

  /** A picture as it is seen everywhere; if there is none any more, its name. */
  function tile(one) {
    const key = keyOf(one);
    if (!tiles.has(key)) {
      tiles.set(key, element('div', {
        role: 'option', draggable: 'true', 'data-key': key, onclick: () => tiles.get(key).focus(), onfocus: () => pick(key),
        ondragstart: (event) => {
          dragged = marked.has(key) ? targets() : all().filter((each) => keyOf(each) === key);
          event.dataTransfer.setData('text/plain', nameOf(one));
        },
        ondragend: () => { dragged = []; forgetHints(); },
      }, element('span', { 'aria-hidden': 'true' }, nameOf(one)), pictureOf(one)));
    }
    const made = tiles.get(key);
    made.className = `tile ${['wrong', 'silent', 'unknown'].filter((name) => one[name]).join(' ')}`;
    made.setAttribute('aria-selected', String(marked.size ? marked.has(key) : key === chosen));
    made.title = `${nameOf(one)}: ${verdict(one).join(', ')}`;
    made.setAttribute('aria-label', made.title);
    made.toggleAttribute('data-chosen', key === chosen);
    made.toggleAttribute('data-marked', marked.has(key));
    return made;
  }

  /** One stop of the Tab key in each list: the chosen picture, or the first. */
  function stops() {
    for (const box of body.querySelectorAll('[role=listbox]')) {
      const stop = box.querySelector('[data-chosen]') ?? box.firstElementChild;
      for (const one of box.children) one.tabIndex = one === stop ? 0 : -1;
    }
  }

  // -- the chosen one ----------------------------------------------------------------------------

  function pick(key) {
    if (key === chosen) return;
    [chosen, armed] = [key, null];
    repaint();
  }

  function repaint() {
    for (const one of all()) if (tiles.has(keyOf(one))) tile(one);
    stops();
    showOne();
  }

  function showOne() {
    const some = targets();
    const one = some[0];
    forgetHints();
    about.hidden = !one;
    if (!one) return;
    const single = some.length === 1;
    const [word, more] = single ? verdict(one) : [`${some.length} pictures`, 'are marked: what you do is for all of them'];
    const doubted = some.some((each) => waits(each) || each.wrong);
    const others = studio.classes.filter((c) => !some.every((each) => !waits(each) && each.label === c.label));
    about.replaceChildren(
      element('div', { class: 'one' }, pictureOf(one), element('div', {}, element('h2', {}, single ? nameOf(one) : ''),
        element('strong', {}, word), element('p', { class: 'quiet', id: 'more' }, more))),
      element('div', { class: 'row' },
        doubted ? button('A', single ? `It is ${said(one)}` : 'Accept', accept, 'primary', () => preview(null, some)) : '',
        ...others.slice(0, 30).map((c) => button(null, [swatch(c.slot), String(c.label)], () => give(() => c.label, some), 'label', () => preview(c.label, some))),
        button('N', 'Another', () => named(some)),
        button('Delete', some.every(waits) ? 'Dismiss' : 'Forget', remove, 'end', some.some(waits) ? null : () => preview(undefined, some))),
      element('p', { class: 'quiet', id: 'would', role: 'status' }), element('div', { id: 'why' }));
    if (single) explain(one);
  }

  /** The nearest examples, and those that speak most against it, with the score without each. */
  async function explain(one) {
    const place = document.getElementById('why');
    const found = await get(`/api/explain?${keyOf(one)}`).catch((error) => ({ error: error.message }));
    if (found.error) {
      place.replaceChildren(element('p', { class: 'quiet' }, found.error));
      return;
    }
    const row = (title, some) => (some.length ? [element('h3', {}, title), element('ul', { class: 'near' }, ...some.map((each) =>
      element('li', { title: String(each.id) }, pictureOf(each), element('span', {}, String(each.label)), element('b', {}, each.score_without.toFixed(2)))))] : []);
    place.replaceChildren(element('p', { class: 'quiet' }, `Score of ${found.label}${waits(one) ? '' : ' if unseen'}: `, element('b', { id: 'score' }, found.score.toFixed(2)),
      '; below each example: without it.'), ...row('Nearest', found.nearest), ...row(`Most against ${found.label}`, found.against));
  }

  // -- what if -----------------------------------------------------------------------------------

  function forgetHints() {
    asked += 1;
    const place = document.getElementById('would');
    if (place) place.textContent = '';
    for (const one of tiles.values()) delete one.dataset.to;
    for (const one of body.querySelectorAll('.over')) one.classList.remove('over');
  }

  /** Which answers would change with a label; null: with what is said; undefined: if forgotten. */
  async function preview(label, some) {
    forgetHints();
    const turn = asked;
    const kind = some.filter((one) => waits(one) === waits(some[0]));
    const y = label === null ? kind.map(said) : label;
    const ids = kind.map((one) => one.id);
    const question = waits(some[0]) ? { verb: 'learn', pictures: kind.map((one) => one.picture), y }
      : label === undefined ? { verb: 'forget', ids } : { verb: 'relabel', ids, y };
    const would = await post('/api/whatif', question).catch((error) => ({ error: error.message }));
    const place = document.getElementById('would');
    if (turn !== asked) return;
    if (would.error) {
      if (place) place.textContent = would.error;
      return;
    }
    const own = new Set(some.map(keyOf));
    const flips = [...would.flips, ...would.pictures.filter((one) => !own.has(keyOf(one)))];
    for (const one of flips) if (tiles.has(keyOf(one))) tiles.get(keyOf(one)).dataset.to = String(one.to);
    const words = `Then ${plural(flips.length, 'answer')} would change, and ${percent(would.accuracy_after)} would be right if unseen.`;
    if (place) place.textContent = words;
    else studio.say(words);
  }

  // -- deciding ----------------------------------------------------------------------------------

  /** The picture that is next when these have gone. */
  function following(some) {
    const gone = new Set(some.map(keyOf));
    const order = [...body.querySelectorAll('.side .tile, .cards .tile')].map((one) => one.dataset.key);
    return order.slice(order.indexOf(keyOf(some[0]))).find((key) => !gone.has(key)) ?? null;
  }

  /** Give each picture a label, y of it. */
  async function give(y, some) {
    const pictures = some.filter(waits);
    const examples = some.filter((one) => !waits(one) && one.label !== y(one));
    if (pictures.length) chosen = following(some);
    dragged = [];
    marked.clear();
    const words = (part) => `${plural(part.length, 'picture')}: ${[...new Set(part.map((one) => String(y(one))))].join(', ')}.`;
    if (pictures.length) await studio.act({ verb: 'learn', pictures: pictures.map((one) => one.picture), y: pictures.map(y) }, () => `Learnt ${words(pictures)}`);
    if (examples.length) await studio.act({ verb: 'relabel', ids: examples.map((one) => one.id), y: examples.map(y) }, () => `Moved ${words(examples)}`);
    if (!pictures.length && !examples.length) repaint();
  }

  function accept() {
    const some = targets().filter((one) => said(one) != null && (waits(one) || one.wrong));
    if (some.length) give(said, some);
  }

  async function named(some) {
    if (!some.length) return;
    const numbers = studio.classes.some((one) => typeof one.label === 'number');
    const given = await studio.ask({ title: `A class of ${plural(some.length, 'picture')}`, name: numbers ? '' : 'new', yes: 'Learn it' });
    if (given) await give(() => (numbers ? Number(given) : given), some);
  }

  /** Dismiss what waits; forget what was learnt, if that is said twice. */
  async function remove() {
    const some = targets();
    const ids = some.filter((one) => !waits(one)).map((one) => one.id);
    const pictures = some.filter(waits).map((one) => one.picture);
    if (!some.length) return;
    if (ids.length && !armed) {
      armed = true;
      about.querySelector('.end').lastChild.textContent = 'For ever?';
      studio.say(`Forget ${plural(ids.length)} for ever? Press Delete again.`);
      return;
    }
    chosen = following(some);
    marked.clear();
    if (ids.length) await studio.act({ verb: 'forget', ids, confirm: true }, () => `Forgotten for ever: ${plural(ids.length)}.`);
    if (!pictures.length) return;
    const failed = await post('/api/dismiss', { pictures }).then(() => null, (error) => error.message);
    await studio.refresh();
    studio.say(failed ?? `Dismissed: ${plural(pictures.length, 'picture')}.`);
  }

  async function upload(files) {
    const [done, failed] = [[], []];
    for (const one of files) {
      studio.say(`Looking at ${one.name}, ${done.length + failed.length + 1} of ${files.length} …`);
      await bring(one).then((found) => done.push(found), (error) => failed.push(error.message));
    }
    file.value = '';
    if (done.length) chosen = keyOf(done.find((one) => one.unknown) ?? done[0]);
    marked.clear();
    await studio.refresh();
    if (done.length) tiles.get(chosen)?.focus();
    const more = failed.length > 1 ? ` And ${failed.length - 1} more.` : '';
    studio.say(`${plural(done.length, 'picture')} brought, ${done.filter((one) => one.unknown).length} of them unknown.${failed.length ? ` ${failed[0]}${more}` : ''}`);
  }

  const brings = (event) => [...event.dataTransfer.types].includes('Files');
  body.addEventListener('dragover', (event) => {
    if (brings(event)) event.preventDefault();
    drop.classList.toggle('over', brings(event));
    if (!event.target.closest('[data-class]') && dragged.length) forgetHints();
  });
  body.addEventListener('drop', (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    drop.classList.remove('over');
    upload([...event.dataTransfer.files]);
  });
  document.addEventListener('paste', (event) => {
    if (!body.hidden && event.clipboardData?.files.length) upload([...event.clipboardData.files]);
  });

  // -- keys --------------------------------------------------------------------------------------

  /** The tile that a key leads to. */
  function beside(key) {
    const order = [...body.querySelectorAll('.tile')];
    const at = order.indexOf(tiles.get(chosen));
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (key === 'Home' || at < 0) return order[0];
    if (key === 'End') return order.at(-1);
    if (step) return order[at + step];
    const from = order[at].getBoundingClientRect();
    const far = (one) => {
      const box = one.getBoundingClientRect();
      const down = (box.y - from.y) * (key === 'ArrowUp' ? -1 : 1);
      return down < 1 ? Infinity : down + 4 * Math.abs(box.x - from.x);
    };
    return order.filter((one) => far(one) < Infinity).sort((a, b) => far(a) - far(b))[0];
  }

  function key(event) {
    const [lower, on] = [event.key.toLowerCase(), event.target];
    const tiled = on.classList?.contains('tile') || on === document.body;
    if (/^(arrow|home|end)/.test(lower) && tiled) {
      const next = beside(event.key);
      next?.scrollIntoView({ block: 'nearest' });
      next?.focus({ preventScroll: true });
    } else if (event.key === ' ' && tiled) {
      if (chosen && !marked.delete(chosen)) marked.add(chosen);
      repaint();
    } else if (lower === 'a') accept();
    else if (lower === 'n') named(!marked.size && (now()?.unknown ?? true) ? unknown() : targets());
    else if (lower === 'o') file.click();
    else if (event.key === 'Delete' || event.key === 'Backspace') remove();
    else if (event.key === 'Escape') {
      [chosen, armed] = [null, null];
      marked.clear();
      repaint();
    } else if (/^[1-9]$/.test(event.key)) {
      const one = studio.classes[Number(event.key) - 1];
      if (one && targets().length) give(() => one.label, targets());
    } else return false;
    return true;
  }

  const view = { name: 'desk', title: 'Desk', shortcut: 'b', element: body, keys: KEYS, load, changed, key };
  return view;
}

// The desk: pictures in the cards of their classes, and new ones that wait to be decided upon.

import { bring, get, post } from './api.js';
import { ANY, labelButtons, pickClass } from './choosing.js';
import { swatch } from './draw.js';
import { apart, element, percent, plural } from './page.js';

const KEYS = [
  ['Arrows, Home, End', 'another picture'],
  ['Space', 'mark it, for what follows'],
  ['1 – 9', 'give it the label of a class'],
  ANY,
  ['A', 'accept what the model says'],
  ['X', 'not this class: another guess, or put aside an example until somebody knows its label'],
  ['N', 'a new class: of the marked ones, or of all that the model does not know'],
  ['Delete', 'dismiss one that waits; twice: forget an example for ever'],
  ['O', 'choose files; or drop or paste pictures'],
  ['Escape', 'choose and mark nothing'],
];
// Pictures that a card shows at first.
const SHOWN = 60;

const waits = (one) => one.picture != null;
const keyOf = (one) => (waits(one) ? `picture=${one.picture}` : `id=${encodeURIComponent(JSON.stringify(one.id))}`);
const nameOf = (one) => String(one.id ?? one.name);
const pictureOf = (one, large = '') => element('img', { src: `/api/thumbnail?${keyOf(one)}${large}`, alt: '', loading: 'lazy', draggable: 'false' });
/** The label that the model or the others give. */
const said = (one) => (waits(one) ? one.label : one.predicted);

/** What is said of a picture: in a word, and in more. */
function verdict(one) {
  if (one.refused) return ['Put aside', `it is not ${one.refused.join(', not ')}`];
  if (!waits(one)) return [String(one.label), one.silent ? 'the others say nothing' : one.wrong ? `the others say ${one.predicted}` : 'the others agree'];
  if (one.label == null) return ['I don’t know', 'every class was refused for it'];
  const spread = one.std == null ? '' : `, standard deviation ${one.std.toFixed(2)}`;
  const more = `${one.unknown ? `at best ${one.label}, ` : ''}${percent(one.probability)}${spread}`;
  return [one.unknown ? 'I don’t know' : String(one.label ?? '?'), more];
}

/** @param {any} studio what all views share @returns a view */
export function desk(studio, signal) {
  let board = { examples: [], waiting: [] };
  let aside = []; // examples whose labels were refused
  let chosen = null; // a key
  let dragged = [];
  let asked = 0;
  const marked = new Set();
  const wide = new Set();
  // Tiles stay while pictures move: nothing is loaded twice.
  const tiles = new Map();

  const file = element('input', { type: 'file', multiple: true, accept: 'image/*', onchange: () => upload([...file.files]) });
  const drop = element('label', { class: 'drop' }, file, element('strong', {}, 'Drop, paste or choose pictures'));
  const [queue, cards] = ['queue', 'cards'].map((name) => element('div', { class: name }));
  const about = element('section', { class: 'card about', 'aria-label': 'The chosen picture' });
  const body = element('section', { class: 'plane desk' }, element('div', { class: 'side' }, element('section', { class: 'card' }, drop, queue), about), cards);

  const all = () => [...board.waiting, ...aside, ...board.examples];
  const now = () => all().find((one) => keyOf(one) === chosen);
  const unknown = () => board.waiting.filter((one) => one.unknown);
  /** What an answer is for: the marked ones, or the chosen one. */
  const targets = () => all().filter((one) => (marked.size ? marked.has(keyOf(one)) : keyOf(one) === chosen));

  async function load() {
    if (!studio.state.pictures) return;
    [board, { aside }] = await Promise.all([get('/api/desk'), get('/api/aside')]);
    const keys = new Set(all().map(keyOf));
    for (const known of [marked, tiles]) [...known.keys()].filter((key) => !keys.has(key)).forEach((key) => known.delete(key));
    if (!keys.has(chosen)) chosen = board.waiting.length ? keyOf(board.waiting[0]) : null;
  }

  function changed() {
    if (!body.hidden) show();
  }

  function show() {
    const inside = body.contains(document.activeElement);
    queue.replaceChildren(...waiting());
    cards.replaceChildren(...studio.classes.map(card));
    stops();
    showOne();
    if (inside && !body.contains(document.activeElement)) tiles.get(chosen)?.focus({ preventScroll: true });
  }

  function waiting() {
    const group = (title, some, ...more) => (some.length ? [element('h2', {}, `${title}: ${some.length}`), list(title, some), ...more] : []);
    return [...group('I don’t know', unknown(), button('N', 'New class from these', () => named(unknown()), 'primary')),
      ...group('Named by the model', board.waiting.filter((one) => !one.unknown)),
      ...group('Put aside', aside)];
  }

  function card(one, i) {
    const mine = board.examples.filter((each) => each.label === one.label);
    const shown = wide.has(one.slot) ? mine : mine.slice(0, SHOWN);
    const count = plural(one.count, 'picture');
    const made = element('section', { class: 'card', 'data-class': String(one.label), 'aria-label': String(one.label) },
      element('h2', {}, swatch(one.slot), element('span', { class: 'name' }, String(one.label)), i < 9 ? element('kbd', {}, String(i + 1)) : null,
        element('span', { class: 'count quiet' }, count), element('span', { class: 'share', title: 'Right when tested unseen' }, percent(one.loo_accuracy))),
      shown.length ? list(`${one.label}: ${count}`, shown) : null,
      shown.length < mine.length ? button(null, `${mine.length - shown.length} more`, () => { wide.add(one.slot); show(); }) : null);
    made.label = one.label;
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
      }, waits(one) ? null : element('span', { 'aria-hidden': 'true' }, nameOf(one)), pictureOf(one), waits(one) ? element('small', { 'aria-hidden': 'true' }) : null));
    }
    const made = tiles.get(key);
    if (waits(one)) made.lastChild.replaceChildren(element('b', {}, `${one.label ?? ''}${one.unknown ? '?' : ''}`), `${percent(one.probability)}, s.d. ${one.std?.toFixed(2) ?? '–'}`);
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

  function pick(key) {
    if (key === chosen) return;
    chosen = key;
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
    studio.calm();
    forgetHints();
    about.hidden = !one;
    if (!one) return;
    const single = some.length === 1;
    const [word, more] = single ? verdict(one) : [`${some.length} pictures`, 'are marked'];
    // What the model does not know it names badly.
    const strange = single && !!one.unknown;
    const doubted = some.some((each) => (waits(each) ? each.label != null : each.wrong));
    // What it is already, and what accepting gives it, needs no button.
    const others = studio.classes.filter((c) => !some.every((each) => (waits(each) ? single && said(each) === c.label : each.label === c.label)));
    const [label] = some.map(said);
    const refusable = single && !one.refused && (waits(one) ? label != null : one.label != null);
    about.replaceChildren(
      element('div', { class: 'one' }, pictureOf(one, single ? '&large=true' : ''), element('div', {}, element('h2', {}, single ? nameOf(one) : ''),
        element('strong', {}, word), element('p', { class: 'quiet', id: 'more' }, more))),
      element('div', { class: 'row' },
        strange ? button('L', 'Choose a class …', any, 'primary') : '',
        doubted ? button('A', single ? `It is ${said(one)}` : 'Accept', accept, strange ? '' : 'primary', () => preview(null, some)) : '',
        refusable ? button('X', `Not ${waits(one) ? label : one.label}`, refuse) : '',
        ...labelButtons(studio, { give: (y) => give(() => y, some), except: studio.classes.filter((c) => !others.includes(c)).map((c) => c.label).concat(one.refused ?? []), hint: one.refused ? null : (y) => preview(y, some), any }),
        button(single && one.unknown ? null : 'N', 'New class', () => named(some)),
        button('Delete', some.every(waits) ? 'Dismiss' : 'Forget', remove, 'end', some.some(waits) ? null : () => preview(undefined, some))),
      element('p', { class: 'quiet', id: 'would', role: 'status' }), element('div', { id: 'why' }));
    if (single && !one.refused) explain(one);
  }

  async function any() {
    const some = targets();
    if (!some.length) return;
    const label = await pickClass(studio, { title: some.length === 1 ? `What is ${nameOf(some[0])}?` : `What are these ${plural(some.length, 'picture')}?`, except: some[0].refused ?? [] });
    if (label != null) give(() => label, some);
  }

  /** Not this class: another guess for one that waits; an example is put aside. */
  async function refuse() {
    const some = targets().filter((one) => !one.refused);
    const [pictures, ids] = [some.filter(waits), some.filter((one) => !waits(one)).map((one) => one.id)];
    if (ids.length) await studio.act({ verb: 'refuse', ids }, () => `Put aside until somebody knows better: ${plural(ids.length, 'picture')}.`);
    const asked = pictures.filter((one) => said(one) != null).map((one) => post('/api/refuse', { picture: one.picture, label: said(one) }));
    if (!asked.length) return;
    const failed = await Promise.all(asked).then(() => null, (error) => error.message);
    await studio.refresh();
    studio.say(failed ?? `${plural(asked.length, 'picture')}: another guess.`);
  }

  /** The nearest examples, those most against it, and those it rests on, with the score without. */
  async function explain(one) {
    const place = document.getElementById('why');
    let exact = apart([]);
    const item = (id, label, score, more) => element('li', { title: String(id) }, pictureOf({ id, label }),
      element('span', { class: 'quiet' }, `${label}${more > 1 ? ` and ${more - 1} alike` : ''}`), element('b', {}, exact(score)));
    const row = (title, items) => (items.length ? [element('h3', {}, title), element('ul', { class: 'near' }, ...items)] : []);
    const alone = (some) => some.map((each) => item(each.id, each.label, each.score_without));
    try {
      const found = await get(`/api/explain?${keyOf(one)}`);
      exact = apart([found.score, ...[...found.nearest, ...found.against].map((each) => each.score_without), ...found.grounds.map((each) => each.score_left)]);
      const count = found.grounds.reduce((sum, each) => sum + each.ids.length, 0);
      const then = found.instead == null || found.instead === found.label ? '' : `, and ${found.instead} the answer`;
      place.replaceChildren(element('p', { class: 'quiet' }, `Score of ${found.label}${waits(one) ? '' : ' when tested unseen'}: `, element('b', { id: 'score' }, exact(found.score)),
        ' (from −1, against it, to 1); below each example: what it would be without it.'), ...row('Nearest', alone(found.nearest)), ...row(`Most against ${found.label}`, alone(found.against)),
        ...row(`Rests on: without ${count === 1 ? 'this' : `these ${count}`} it would be ${count ? exact(found.grounds.at(-1).score_left) : ''}${then}`,
          found.grounds.map((each) => item(each.ids[0], each.label, each.score_left, each.ids.length))));
    } catch (error) {
      place.textContent = error.message;
    }
  }

  function forgetHints() {
    asked += 1;
    document.getElementById('would')?.replaceChildren();
    for (const one of tiles.values()) delete one.dataset.to;
    for (const one of body.querySelectorAll('.over')) one.classList.remove('over');
  }

  /** Which answers would change with a label; null: with what is said; undefined: if forgotten. */
  async function preview(label, some) {
    forgetHints();
    const [turn, place] = [asked, document.getElementById('would')];
    const kind = some.filter((one) => waits(one) === waits(some[0]));
    const y = label === null ? kind.map(said) : label;
    const ids = kind.map((one) => one.id);
    const question = waits(some[0]) ? { verb: 'learn', pictures: kind.map((one) => one.picture), y }
      : label === undefined ? { verb: 'forget', ids } : { verb: 'relabel', ids, y };
    try {
      const would = await post('/api/whatif', question);
      if (turn !== asked) return;
      const own = new Set(some.map(keyOf));
      const flips = [...would.flips, ...would.pictures.filter((one) => !own.has(keyOf(one)))];
      for (const one of flips) if (tiles.has(keyOf(one))) tiles.get(keyOf(one)).dataset.to = String(one.to);
      place.textContent = `Then ${plural(flips.length, 'answer')} would change, and ${percent(would.accuracy_after)} would be right when tested unseen.`;
    } catch (error) {
      place.textContent = error.message;
    }
  }

  /** What is done with pictures ends their choice; another one is chosen if these go. */
  function leave(gone) {
    const keys = gone.map(keyOf);
    const order = [...tiles.get(keys[0])?.closest('.queue, .cards').querySelectorAll('.tile') ?? []].map((one) => one.dataset.key);
    if (keys.length) chosen = order.slice(order.indexOf(keys[0])).find((key) => !keys.includes(key));
    dragged = [];
    marked.clear();
  }

  /** Give each picture a label, y of it. */
  async function give(y, some) {
    const pictures = some.filter(waits);
    const examples = some.filter((one) => !waits(one) && one.label !== y(one));
    leave(pictures);
    const words = (part) => `${plural(part.length, 'picture')}: ${[...new Set(part.map(y))].join(', ')}.`;
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
    const ticks = new Map(some.map((one) => [one, element('input', { type: 'checkbox', checked: true, 'aria-label': nameOf(one) })]));
    const more = element('div', { class: 'ticks' }, ...some.map((one) => element('label', { title: nameOf(one) }, ticks.get(one), pictureOf(one))));
    const given = await studio.ask({ title: `A new class of ${plural(some.length, 'picture')}`, words: 'Untick what is not of it.', more, name: numbers ? '' : 'new', yes: 'Learn it' });
    const chosen = some.filter((one) => ticks.get(one).checked);
    if (given && chosen.length) await give(() => (numbers ? Number(given) : given), chosen);
  }

  /** The button says what it would do. */
  function armed() {
    const end = about.querySelector('.end');
    if (end && !targets().every(waits)) end.lastChild.textContent = studio.armed == null ? 'Forget' : 'For ever?';
  }

  /** Dismiss what waits; forget what was learnt, if that is said twice. */
  async function remove() {
    const some = targets();
    const ids = some.filter((one) => !waits(one)).map((one) => one.id);
    const pictures = some.filter(waits).map((one) => one.picture);
    if (!some.length) return;
    if (ids.length && !studio.sure(ids.join(), `Forget ${plural(ids.length)} for ever?`)) return;
    leave(some);
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
    studio.say([`${plural(done.length, 'picture')} brought, ${done.filter((one) => one.unknown).length} of them unknown.`, ...failed].join(' '));
  }

  /** Where something is dropped: files anywhere, pictures on the card of a class. */
  const under = (event) => (dragged.length ? event.target.closest('.cards .card') : event.dataTransfer.types.includes('Files') ? drop : null);
  body.addEventListener('dragover', (event) => {
    const over = under(event);
    if (over) event.preventDefault();
    if (over?.classList.contains('over')) return;
    if (over && dragged.length) preview(over.label, dragged);
    else forgetHints();
    over?.classList.add('over');
  });
  body.addEventListener('drop', (event) => {
    const over = under(event);
    if (!over) return;
    event.preventDefault();
    forgetHints();
    if (dragged.length) give(() => over.label, dragged);
    else upload([...event.dataTransfer.files]);
  });
  document.addEventListener('paste', (event) => {
    if (!body.hidden && event.clipboardData?.files.length) upload([...event.clipboardData.files]);
  }, { signal });

  /** The tile that a key leads to. */
  function beside(key) {
    const order = [...body.querySelectorAll('.tile')];
    const at = order.indexOf(tiles.get(chosen));
    const next = { home: 0, end: order.length - 1, arrowleft: at - 1, arrowright: at + 1 }[at < 0 ? 'home' : key];
    if (next != null) return order[next];
    const from = order[at].getBoundingClientRect();
    const far = (one) => {
      const box = one.getBoundingClientRect();
      const down = (box.y - from.y) * (key === 'arrowup' ? -1 : 1);
      return down < 1 ? Infinity : down + 4 * Math.abs(box.x - from.x);
    };
    return order.filter((one) => far(one) < Infinity).sort((a, b) => far(a) - far(b))[0];
  }

  function key(event) {
    const [lower, on] = [event.key.toLowerCase(), event.target];
    const tiled = on.classList?.contains('tile') || on === document.body;
    if (/^(arrow|home|end)/.test(lower) && tiled) {
      const next = beside(lower);
      next?.scrollIntoView({ block: 'nearest' });
      next?.focus({ preventScroll: true });
    } else if (event.key === ' ' && tiled) {
      if (chosen && !marked.delete(chosen)) marked.add(chosen);
      repaint();
    } else if (lower === 'a') accept();
    else if (lower === 'x') refuse();
    else if (lower === 'l') any();
    else if (lower === 'n') named(!marked.size && (now()?.unknown ?? true) ? unknown() : targets());
    else if (lower === 'o') file.click();
    else if (event.key === 'Delete' || event.key === 'Backspace') remove();
    else if (event.key === 'Escape') {
      chosen = null;
      marked.clear();
      repaint();
    } else if (/^[1-9]$/.test(event.key)) {
      const one = studio.classes[Number(event.key) - 1];
      if (one && targets().length) give(() => one.label, targets());
    } else return false;
    return true;
  }

  return {
    name: 'desk', title: 'Desk', shortcut: 'b', element: body, keys: KEYS, possible: (state) => state.pictures, load, changed, key, armed,
  };
}

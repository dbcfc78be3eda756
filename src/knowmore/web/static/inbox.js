// The inbox: labels that the others contradict, the biggest doubt first; one key answers.

import { get, post } from './api.js';
import { map, ring, swatch } from './draw.js';
import { ANY, labelButtons, pickClass } from './choosing.js';
import { exhibit, gallery, markWords, pictureOf, shortName } from './example.js';
import { element, percent, plural, UNSEEN } from './page.js';

const KEYS = [
  ['A', 'accept: take the label that the others say'],
  ['K', 'keep the label: it is not asked again until it changes'],
  ['U', 'take the last answer back'],
  ['X', 'not this class: put it aside until somebody knows its label'],
  ['1 – 9', 'give it another label'],
  ANY,
  ['Delete Delete', 'forget it for ever'],
  ['J, Enter', 'the next one'],
];

/** @param {any} studio what all views share @returns a view */
export function inbox(studio) {
  let found = { suspects: [], silent: 0, judged: 0, kept: 0 };
  let earlier = []; // suspects of before that nobody has answered and the list lacks now
  let aside = []; // examples whose labels were refused
  let chosen = null; // an id
  let points = null;
  // Every suspect since the inbox was opened, by its id: a mended label changes what is said of the
  // others, but whoever was listed is asked about.
  const listed = new Map();
  const done = []; // the last answers, to be taken back

  const right = element('strong', { id: 'inbox-right' });
  const count = element('span', { id: 'inbox-count' });
  const closing = element('p', { class: 'card', id: 'inbox-rest', hidden: true });
  const list = element('ol', { class: 'doubts', 'aria-label': 'Suspects, the biggest doubt first' });
  const asideTitle = element('h2', { hidden: true });
  const asideList = element('ol', { class: 'doubts', 'aria-label': 'Put aside' });
  const body = element('div', { class: 'doubt card', id: 'doubt', tabindex: 0, 'aria-label': 'The suspect' });
  const view = element('section', { class: 'inbox' },
    element('div', { class: 'doubts-side' }, element('p', { class: 'card count' }, right, element('span', { title: UNSEEN }, ' right when tested on each example unseen'), ' · ', count), closing, list, asideTitle, asideList), body);

  const open = () => [...found.suspects, ...earlier];
  const all = () => [...open(), ...aside];
  const now = () => all().find((one) => one.id === chosen) ?? all()[0] ?? null;
  /** The plane is a help where it shows the model. */
  const mapped = () => studio.state.plane.possible && !studio.state.plane.slice?.misleads && !studio.state.pictures;

  /** What is left when no label is suspect. */
  function rest() {
    const more = found.otherwise ? ` ${plural(found.otherwise)} would still be predicted otherwise, though not so surely: see the table.` : '';
    const kept = found.kept ? ` ${plural(found.kept, 'label')} in doubt ${found.kept > 1 ? 'were' : 'was'} kept.` : '';
    const waits = aside.length ? ` ${plural(aside.length)} put aside ${aside.length > 1 ? 'wait' : 'waits'} for a label.` : '';
    return `Every suspect has an answer, and no other label is likely to be wrong.${kept}${waits}${more}`;
  }

  async function load() {
    const possible = mapped() && studio.state.n > 0;
    await Promise.all([
      get('/api/suspects?limit=1000').then(async (all) => {
        found = all;
        earlier = await unanswered();
      }),
      studio.state.refuses ? get('/api/aside').then((all) => { aside = all.aside; }) : null,
      possible ? get('/api/plane/points').then((all) => { points = all; }) : null,
    ]);
    // What the file does not hold in any way was forgotten.
    for (const [id, one] of listed) if (!one.held && !aside.some((each) => each.id === id)) listed.delete(id);
    chosen = now()?.id ?? null;
    show();
  }

  /** The suspects of before that the list lacks now, with the labels that were doubted. */
  async function unanswered() {
    const known = new Set(found.suspects.map((one) => one.id));
    for (const one of found.suspects) listed.set(one.id, { ...one, held: true });
    const ids = [...listed.keys()].filter((id) => !known.has(id));
    const still = ids.length ? (await post('/api/suspects/listed', { ids })).listed : [];
    const held = new Map(still.map((one) => [one.id, one]));
    for (const id of ids) listed.get(id).held = held.has(id);
    return ids.filter((id) => held.has(id) && !held.get(id).kept && held.get(id).label === listed.get(id).label)
      .map((id) => ({ ...listed.get(id), shown: held.get(id).shown, contradicting: [], past: true }));
  }

  function show() {
    const left = open();
    right.textContent = percent(found.accuracy);
    count.textContent = `${plural(left.length, 'doubt')} left`;
    closing.hidden = !!left.length || !aside.length || !found.judged;
    closing.textContent = closing.hidden ? '' : rest();
    const entry = (one, ...more) => element('li', {}, element('button', {
      type: 'button', 'aria-current': one.id === chosen ? 'true' : null, onclick: () => pick(one.id), title: String(one.id),
    }, one.shown.kind === 'picture' ? element('img', { src: pictureOf(one.id), alt: '', loading: 'lazy' }) : null, ...more));
    list.replaceChildren(...left.slice(0, 60).map((one) => entry(one, swatch(studio.slot(one.label)), element('span', { class: 'name' }, nameOf(one)),
      one.past ? element('span', { class: 'quiet' }, 'doubted at first') : element('span', { class: 'bar', title: `wrong with a chance of ${percent(one.doubt)}` }, bar(one.doubt)))));
    asideTitle.hidden = !aside.length;
    asideTitle.textContent = `Put aside: ${aside.length}`;
    asideList.replaceChildren(...aside.map((one) => entry(one, element('span', { class: 'name' }, shortName(one.id)), element('span', { class: 'quiet' }, `not ${one.refused.at(-1)}`))));
    showOne();
  }

  /** What a list calls an example: the beginning of its text, or the end of its id. */
  const nameOf = (one) => (one.shown.kind === 'text' ? `${one.shown.text.slice(0, 20)}…` : shortName(one.id));

  function bar(doubt) {
    const fill = element('i');
    fill.style.width = `${Math.round(100 * doubt)}%`;
    return fill;
  }

  function showOne() {
    const one = now();
    if (!one) {
      body.replaceChildren(element('h2', {}, 'No doubt is left'),
        element('p', {}, found.judged ? rest() : 'The model needs examples of two classes.'));
      return;
    }
    if (one.refused) showAside(one);
    else showDoubt(one);
  }

  const button = (key, words, run, kind = '', hint = null) => {
    const on = hint ? { onmouseenter: hint, onfocus: hint } : {};
    return element('button', { type: 'button', class: kind, onclick: run, ...on }, element('kbd', {}, key), ` ${words}`);
  };
  const forgetting = (one) => button('Delete', studio.armed === one.id ? 'For ever?' : 'Forget', forget, 'end', one.refused ? null : () => preview(null, true));

  const saidOf = (slot, words, label) => element('div', { class: 'said' }, swatch(slot), element('div', {},
    element('span', { class: 'quiet' }, words), element('strong', {}, String(label))));

  function showDoubt(one) {
    const pictured = one.shown.kind === 'picture';
    body.replaceChildren(...[
      element('h2', {}, `Example ${one.id}`),
      element('div', { class: 'both' }, saidOf(studio.slot(one.label), 'is labelled', one.label),
        element('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
        saidOf(studio.slot(one.preferred), `the others ${one.past ? 'said at first' : 'say'}, ${percent(one.probability)}`, one.preferred)),
      element('div', { class: 'beside' }, exhibit(one.id, one.shown), element('div', { class: 'against' }),
        !pictured && points ? element('canvas', { class: 'past', role: 'img', 'aria-label': 'Where it is in the plane' }) : null),
      element('div', { class: 'row answers' },
        button('A', `It is ${one.preferred}`, accept, 'primary', () => preview(one.preferred)),
        button('K', `It is ${one.label}: keep`, keep),
        studio.state.refuses ? button('X', `Not ${one.label}`, refuse) : '',
        ...labelButtons(studio, { give: relabel, except: [one.label, one.preferred], hint: preview, always: true }),
        forgetting(one)),
      element('p', { class: 'quiet', id: 'whatif' }),
    ].filter(Boolean));
    showAgainst(one, pictured);
    if (one.shown.kind === 'text') showWords(one);
    showPlace(one);
  }

  /** An example whose label was refused: the model does without it until it has another. */
  function showAside(one) {
    body.replaceChildren(
      element('h2', {}, `Example ${one.id}`),
      element('p', {}, 'It is put aside, since it is not ', element('b', {}, one.refused.join(', not ')), '. The model does without it until it has another label.'),
      one.preferred == null ? '' : element('div', { class: 'both' }, saidOf(studio.slot(one.preferred), `the others say, ${percent(one.probability)}`, one.preferred)),
      element('div', { class: 'beside' }, exhibit(one.id, one.shown)),
      element('div', { class: 'row answers' },
        one.preferred == null ? '' : button('A', `It is ${one.preferred}`, accept, 'primary'),
        ...labelButtons(studio, { give: relabel, except: [...one.refused, one.preferred], always: true }), forgetting(one)));
  }

  /** The examples that speak most against the label: as pictures, or by name. */
  async function showAgainst(one, pictured) {
    const place = body.querySelector('.against');
    if (one.past) {
      place.replaceChildren(element('p', { class: 'quiet' }, 'Since other labels were mended it is not in doubt any more. It is asked about since it was listed.'));
      return;
    }
    const title = element('h3', {}, `These say ${one.preferred}`);
    if (!pictured) {
      if (one.contradicting.length) place.replaceChildren(title, element('p', { class: 'quiet' }, one.contradicting.join(', ')));
      return;
    }
    const { against } = await get(`/api/against?id=${encodeURIComponent(JSON.stringify(one.id))}`).catch(() => ({ against: [] }));
    if (against.length && place.isConnected) place.replaceChildren(title, gallery(against, (each) => String(each.label)));
  }

  /** Which words speak for what the others say. */
  async function showWords(one) {
    const place = body.querySelector('.beside');
    const { words } = await get(`/api/words?id=${encodeURIComponent(JSON.stringify(one.id))}`).catch(() => ({ words: [] }));
    if (place.isConnected) markWords(place, one.shown.text, words);
  }

  /** Where the suspect is: ringed, and with a dashed ring those that contradict it. */
  function showPlace(one) {
    const canvas = body.querySelector('canvas.past');
    if (!canvas || !points || !studio.state.plane.bounds) return;
    const slotOf = (i) => studio.slot(points.labels[i]);
    const { pen, place, look } = map(canvas, studio.state.plane.bounds, points, slotOf);
    for (const id of one.contradicting) ring(pen, ...place(points.ids.indexOf(id)), 10, look, true);
    ring(pen, ...place(points.ids.indexOf(one.id)), 12, look);
  }

  async function preview(label, gone = false) {
    const one = now();
    if (label == null && !gone) return;
    const asked = gone ? { verb: 'forget', ids: [one.id] } : { verb: 'relabel', ids: [one.id], y: label };
    try {
      const would = await post('/api/whatif', asked);
      const place = body.querySelector('#whatif');
      if (place) place.textContent = `Then ${plural(would.flips.length, 'answer')} would change, and ${percent(would.accuracy_after)} would be right when tested unseen.`;
    } catch (error) {
      studio.say(error.message);
    }
  }

  function pick(id) {
    chosen = id;
    studio.calm();
    show();
  }

  /** The suspect after this one, which is about to leave. */
  function following(one) {
    const left = all();
    return left[left.indexOf(one) + 1]?.id ?? null;
  }

  function relabel(label) {
    const one = now();
    if (!one) return;
    const answer = { id: one.id };
    chosen = null;
    done.push(answer);
    studio.act({ verb: 'relabel', ids: [one.id], y: label }, () => `${one.id} is ${label} now.`)
      .then((found) => { answer.number = found?.number; });
  }

  /** Take the last answer back: a relabel by the journal, which knows nothing of kept labels. */
  function back() {
    const last = done.pop();
    if (last && !last.kept && last.number !== studio.state.number) {
      studio.say('The file was edited since: the history leads back.');
      return true;
    }
    chosen = last?.id ?? chosen;
    if (!last?.kept) return false;
    studio.act({ verb: 'keep', ids: [last.id], kept: false }, () => `${last.id} is open again.`);
    return true;
  }

  const accept = () => now()?.preferred != null && relabel(now().preferred);

  /** It is not what it is labelled, and nobody says what it is: it is put aside. */
  function refuse() {
    const one = now();
    if (!one || one.refused || !studio.state.refuses) return;
    const answer = { id: one.id };
    chosen = following(one);
    done.push(answer);
    studio.act({ verb: 'refuse', ids: [one.id] }, () => `${one.id} is not ${one.label}: it is put aside.`)
      .then((found) => { answer.number = found?.number; });
  }

  async function any() {
    const one = now();
    if (!one) return;
    const label = await pickClass(studio, { title: `What is ${shortName(one.id)}?`, except: one.refused ?? [one.label] });
    if (label != null) relabel(label);
  }

  function keep() {
    const one = now();
    if (!one || one.refused) return;
    chosen = following(one);
    done.push({ id: one.id, kept: true });
    studio.act({ verb: 'keep', ids: [one.id] }, () => `${one.id} stays ${one.label}.`);
  }

  function next() {
    const one = now();
    if (one) pick(following(one) ?? all()[0].id);
  }

  function forget() {
    const one = now();
    if (!one) return;
    if (!studio.sure(one.id, `Forget ${one.id} for ever?`)) return;
    chosen = null;
    done.length = 0;
    studio.act({ verb: 'forget', ids: [one.id], confirm: true }, () => `Forgotten for ever: ${one.id}.`);
  }

  function key(event) {
    const lower = event.key.toLowerCase();
    if (lower === 'u') return back();
    if (lower === 'a') accept();
    else if (lower === 'k') keep();
    else if (lower === 'x') refuse();
    else if (lower === 'l') any();
    else if (lower === 'j' || (event.key === 'Enter' && event.target === body)) next();
    else if (event.key === 'Delete' || event.key === 'Backspace') forget();
    else if (/^[1-9]$/.test(event.key)) {
      const one = studio.classAt(event.key);
      if (one) relabel(one.label);
    } else return false;
    return true;
  }

  return { name: 'inbox', title: 'Inbox', shortcut: 'i', element: view, keys: KEYS, load, key, armed: showOne, busy: () => `Asking of each of ${plural(studio.state.n)} what the others say …` };
}

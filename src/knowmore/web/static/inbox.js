// The inbox: labels that the others contradict, the biggest doubt first; one key answers.

import { get, post } from './api.js';
import { map, ring, swatch } from './draw.js';
import { element, features, percent, plural } from './page.js';

const KEYS = [
  ['A', 'accept: take the label that the others say'],
  ['K', 'keep the label: it is not asked again until it changes'],
  ['U', 'take the last answer back'],
  ['1 – 9', 'give it another label'],
  ['Delete Delete', 'forget it for ever'],
  ['J, Enter', 'the next one'],
];

/** @param {any} studio what all views share @returns a view */
export function inbox(studio) {
  let found = { suspects: [], silent: 0, judged: 0, kept: 0 };
  let chosen = null; // an id
  let points = null;
  const done = []; // the last answers, to be taken back

  const right = element('strong', { id: 'inbox-right' });
  const count = element('span', { id: 'inbox-count' });
  const list = element('ol', { class: 'doubts', 'aria-label': 'Suspects, the biggest doubt first' });
  const body = element('div', { class: 'doubt card', id: 'doubt', tabindex: 0, 'aria-label': 'The suspect' });
  const view = element('section', { class: 'inbox' },
    element('div', { class: 'doubts-side' }, element('p', { class: 'card count' }, right, ' right if unseen · ', count), list), body);

  const now = () => found.suspects.find((one) => one.id === chosen) ?? found.suspects[0] ?? null;

  /** What is left when no label is suspect. */
  function rest() {
    const otherwise = Math.round((1 - (found.accuracy ?? 1)) * studio.state.n);
    const more = otherwise ? ` ${plural(otherwise)} would still be predicted otherwise if unseen, but not so surely: see the table.` : '';
    const kept = found.kept ? ` ${plural(found.kept, 'label')} in doubt ${found.kept > 1 ? 'were' : 'was'} kept.` : '';
    return `No other label is likely to be wrong.${kept}${more}`;
  }

  async function load() {
    const possible = studio.state.plane.possible && studio.state.n > 0;
    await Promise.all([
      get('/api/suspects?limit=200').then((all) => {
        found = all;
        chosen = now()?.id ?? null;
        show();
      }),
      possible ? get('/api/plane/points').then((all) => { points = all; }) : null,
    ]);
    if (now() && body.querySelector('canvas.past')) showPlace(now());
    else showOne();
  }

  function show() {
    const left = found.suspects;
    right.textContent = percent(found.accuracy);
    count.textContent = `${plural(left.length, 'doubt')} left`;
    list.replaceChildren(...left.slice(0, 60).map((one) => element('li', {}, element('button', {
      type: 'button', 'aria-current': one.id === chosen ? 'true' : null, onclick: () => pick(one.id),
    }, swatch(studio.slot(one.label)), element('span', { class: 'name' }, String(one.id)),
    element('span', { class: 'bar', title: `wrong with a chance of ${percent(one.doubt)}` }, bar(one.doubt))))));
    showOne();
  }

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
    const said = (slot, words, label) => element('div', { class: 'said' }, swatch(slot), element('div', {},
      element('span', { class: 'quiet' }, words), element('strong', {}, String(label))));
    body.replaceChildren(...[
      element('h2', {}, `Example ${one.id}`),
      element('div', { class: 'both' }, said(studio.slot(one.label), 'is labelled', one.label),
        element('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
        said(studio.slot(one.preferred), `the others say, ${percent(one.probability)}`, one.preferred)),
      one.contradicting.length ? element('p', { class: 'quiet' }, 'Most against its label: ', one.contradicting.join(', '), '.') : null,
      element('div', { class: 'beside' }, features(one.features, studio.state.features), points ? element('canvas', { class: 'past', role: 'img', 'aria-label': 'Where it is in the plane' }) : null),
      element('div', { class: 'row answers' },
        action('A', `It is ${one.preferred}`, accept, 'primary'),
        action('K', 'Keep the label', keep),
        ...studio.classes.map((c, i) => [c, i]).filter(([c]) => c.label !== one.label && c.label !== one.preferred).slice(0, 6)
          .map(([c, i]) => action(String(i + 1), String(c.label), () => relabel(c.label), '', c.label)),
        action('Delete', studio.armed === one.id ? 'For ever?' : 'Forget', forget, 'end')),
      element('p', { class: 'quiet', id: 'whatif' }),
    ].filter(Boolean));
    showPlace(one);
  }

  /** Where the suspect is: ringed, and with a dashed ring those that contradict it. */
  function showPlace(one) {
    const canvas = body.querySelector('canvas.past');
    if (!canvas || !studio.state.plane.bounds) return;
    const slotOf = (i) => studio.slot(points.labels[i]);
    const { pen, place, look } = map(canvas, studio.state.plane.bounds, points, slotOf);
    for (const id of one.contradicting) ring(pen, ...place(points.ids.indexOf(id)), 10, look, true);
    ring(pen, ...place(points.ids.indexOf(one.id)), 12, look);
  }

  function action(key, words, run, kind = '', label = null) {
    const hint = () => preview(label ?? (run === accept ? now().preferred : null), run === forget);
    return element('button', { type: 'button', class: kind, onclick: run, onmouseenter: hint, onfocus: hint }, element('kbd', {}, key), ` ${words}`);
  }

  async function preview(label, gone) {
    const one = now();
    if (label == null && !gone) return;
    const asked = gone ? { verb: 'forget', ids: [one.id] } : { verb: 'relabel', ids: [one.id], y: label };
    try {
      const would = await post('/api/whatif', asked);
      const place = body.querySelector('#whatif');
      if (place) place.textContent = `Then ${plural(would.flips.length, 'answer')} would change, and ${percent(would.accuracy_after)} would be right if unseen.`;
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
    const left = found.suspects;
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

  const accept = () => now() && relabel(now().preferred);

  function keep() {
    const one = now();
    if (!one) return;
    chosen = following(one);
    done.push({ id: one.id, kept: true });
    studio.act({ verb: 'keep', ids: [one.id] }, () => `${one.id} stays ${one.label}.`);
  }

  function next() {
    const one = now();
    if (one) pick(following(one) ?? found.suspects[0].id);
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
    else if (lower === 'j' || (event.key === 'Enter' && event.target === body)) next();
    else if (event.key === 'Delete' || event.key === 'Backspace') forget();
    else if (/^[1-9]$/.test(event.key)) {
      const one = studio.classAt(event.key);
      if (one) relabel(one.label);
    } else return false;
    return true;
  }

  return { name: 'inbox', title: 'Inbox', shortcut: 'i', element: view, keys: KEYS, load, key, armed: showOne };
}

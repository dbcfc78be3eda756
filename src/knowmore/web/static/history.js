// History: the journal as a line to scrub along. Every state is the exact model of its examples.

import { field as askField, get, post } from './api.js';
import { colour, fieldImage, map, theme } from './draw.js';
import { merging } from './merging.js';
import { about, classes, element, misleading, percent, plural, unseen } from './page.js';

const KEYS = [
  ['← →', 'the state before, the next one'],
  ['Home, End', 'the beginning, the present'],
];

/** @param {any} studio what all views share @returns a view */
export function history(studio) {
  let entries = [];
  let number = 0;
  let whose = '';
  let asked = 0;

  const range = element('input', { type: 'range', min: 0, max: 0, value: 0, id: 'scrub', 'aria-label': 'State of the journal', oninput: () => go(Number(range.value)) });
  const strip = element('canvas', { class: 'strip', 'aria-hidden': 'true' });
  const picture = element('canvas', { class: 'past', role: 'img', 'aria-label': 'The examples of this state' });
  const misled = element('div', { class: 'misled', hidden: true });
  let anyway = false; // whether somebody wants to see a plane that misleads
  const words = element('p', { id: 'past-words' });
  const list = element('ol', { class: 'entries', 'aria-label': 'Entries of the journal, the last first' });
  const filter = element('select', { id: 'whose', onchange: () => { whose = filter.value; show(); } });
  const forgets = element('button', { type: 'button', class: 'end', id: 'forget-whose', hidden: true, onclick: forgetAll }, 'Forget this contributor …');
  const proof = element('button', { type: 'button', id: 'verify', onclick: verify }, 'Verify the file');
  const certificate = element('p', { class: 'quiet', id: 'certificate', role: 'status' });
  const merge = merging(studio);
  const view = element('section', { class: 'history' },
    element('div', { class: 'card line-card' }, element('h2', {}, 'Go back in time: drag to see the model as it was'), strip, range, words, misled, picture),
    element('div', { class: 'card' },
      element('div', { class: 'row' }, element('label', {}, 'Contributor ', filter), forgets, proof), certificate, list,
      merge.element));

  async function load() {
    const found = await get('/api/log');
    entries = found.entries;
    const names = [...new Set(entries.map((one) => one.contributor).filter(Boolean))];
    filter.replaceChildren(element('option', { value: '' }, 'everyone'), ...names.map((one) => element('option', { value: one }, one)));
    filter.value = names.includes(whose) ? whose : whose = '';
    number = found.number;
    range.max = entries.length;
    range.value = live();
    show();
    await Promise.all([merge.load(), see(number)]);
  }

  const live = () => entries.filter((one) => one.number <= number).length;

  function show() {
    forgets.hidden = !whose;
    const chosen = entries.filter((one) => !whose || one.contributor === whose);
    list.replaceChildren(...chosen.slice(-200).reverse().map((one) => element('li', { class: one.undone ? 'undone' : '' }, element('button', {
      type: 'button', 'aria-current': one.number === number ? 'true' : null, onclick: () => jump(one.number),
    }, element('b', {}, String(one.number)), element('span', {}, about(one)),
    element('span', { class: 'quiet' }, [one.contributor, new Date(one.at).toLocaleString()].filter(Boolean).join(' · '))))));
    paintStrip();
  }

  function paintStrip() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = strip.clientWidth || 600;
    [strip.width, strip.height] = [width * scale, 46 * scale];
    const pen = strip.getContext('2d');
    pen.scale(scale, scale);
    const most = Math.max(...entries.map((one) => one.count), 1);
    const verbs = ['add', 'replace', 'relabel', 'forget', 'merge', 'set_parameters'];
    entries.forEach((one, i) => {
      const tall = 6 + 36 * Math.sqrt(one.count / most);
      const slot = Math.max(verbs.indexOf(one.verb), 0);
      pen.globalAlpha = (whose && one.contributor !== whose) || one.undone ? 0.25 : one.number <= number ? 1 : 0.5;
      pen.fillStyle = one.verb === 'forget' ? colour(3) : colour(slot);
      const step = (width - 16) / Math.max(entries.length, 1);
      pen.fillRect(8 + (i + 0.15) * step, 46 - tall, Math.max(step * 0.7, 1), tall);
    });
  }

  function jump(to) {
    number = to;
    range.value = live();
    show();
    see(to);
  }

  function go(place) {
    jump(place ? entries[place - 1].number : 0);
  }

  /** The state of the journal at a number: its examples and how often it is right. */
  async function see(to) {
    const turn = (asked += 1);
    try {
      const past = await post('/api/state-at', { number: to });
      if (turn !== asked) return;
      words.textContent = `After entry ${to}: ${plural(past.n)}, ${classes(past.classes.length)}, ${unseen(past.loo_accuracy)}.${past.forgotten ? ' What was forgotten later is not shown: it is nowhere any more.' : ''}`;
      await paintPast(past, turn);
    } catch (error) {
      words.textContent = error.message;
    }
  }

  async function paintPast(past, turn) {
    const part = studio.state.plane.slice;
    const hides = !!past.points && !!part?.misleads && !anyway;
    picture.hidden = !past.points || hides;
    misled.hidden = !hides;
    if (hides) misled.replaceChildren(...misleading(part, studio.state.features, () => { anyway = true; paintPast(past, turn); }));
    if (picture.hidden) return;
    const { bounds } = studio.state.plane;
    const field = past.n ? await askField({ ...bounds, w: 64, h: 64, at: past.number }) : { empty: true };
    if (turn !== asked) return;
    const image = field.empty ? null : fieldImage(field, (i) => studio.slot(field.classes[i]), theme());
    map(picture, bounds, past.points, (i) => studio.slot(past.points.labels[i]), image);
  }

  /** Forget all of a contributor: first what would change, then the act, then the proof. */
  async function forgetAll() {
    const would = await post('/api/preview-forget', { contributor: whose }).catch((error) => studio.say(error.message));
    if (!would) return;
    const agreed = await studio.ask({
      title: `Forget all of ${whose} for ever?`,
      words: `${plural(would.count)} would go, and ${plural(would.flips.length, 'answer')} would change.${would.changed ? ` ${plural(would.changed)} would get back what they had before.` : ''} Right when tested unseen: ${percent(would.accuracy_before)}, then ${percent(would.accuracy_after)}. What was edited before can not be undone after that.`,
      yes: 'Forget for ever',
    });
    if (!agreed) return;
    const done = await studio.act({ verb: 'forget', contributor: whose, confirm: true }, () => `Forgotten for ever: ${plural(would.count)} of this contributor.`);
    if (done) await verify();
  }

  async function verify() {
    certificate.textContent = 'Comparing the file with a fit of its examples from scratch …';
    try {
      const { ok, text } = await post('/api/verify', {});
      certificate.textContent = `${ok ? 'Verified.' : 'Not verified.'} ${text}`;
    } catch (error) {
      certificate.textContent = error.message;
    }
  }

  function key(event) {
    const place = { ArrowLeft: live() - 1, ArrowRight: live() + 1, Home: 0, End: entries.length }[event.key];
    if (place == null || event.target === filter) return false;
    if (place >= 0 && place <= entries.length) {
      range.value = place;
      go(place);
    }
    return true;
  }

  return { name: 'history', title: 'History', shortcut: 'h', element: view, keys: KEYS, load, key };
}

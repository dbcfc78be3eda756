// The table: every example with its columns, sorted, searched and filtered by the studio, page by page.

import { post } from './api.js';
import { ANY, labelButtons, pickClass } from './choosing.js';
import { swatch } from './draw.js';
import { pictureOf } from './example.js';
import { askClass, element, plural, shownValue } from './page.js';

const KEYS = [
  ['↑ ↓', 'the example above, below'],
  ['Page up, Page down', 'the page before, the next one'],
  ['Home, End', 'the first page, the last one'],
  ['1 – 9, N', 'relabel the chosen example, with a new class'],
  ANY,
  ['Delete Delete', 'forget it for ever'],
  ['/', 'search; Enter or Escape leads back'],
  ['[ ]', 'other columns'],
];
const PAGE = 50;
const OWN = [['id', 'id'], ['label', 'label'], ['predicted', 'the others say'], ['unseen', 'tested unseen'], ['contributor', 'contributor']];

/** @param {any} studio what all views share @returns a view */
export function table(studio) {
  const wanted = { offset: 0, limit: PAGE, sort: null, down: false, search: '', label: null, contributor: null, unseen: null, first: 0 };
  let found = { rows: [], found: 0, total: 0, columns: [], contributors: [] };
  let at = 0; // the chosen row of this page
  let asked = 0;
  let waiting = null;

  const search = element('input', { type: 'search', id: 'search', placeholder: 'id, label, contributor …', 'aria-label': 'Search', maxlength: 200, oninput: later, onkeydown: onSearchKey });
  const label = choice('of-class', 'Class', (value) => { wanted.label = value === '' ? null : studio.classes[Number(value)].label; });
  const who = choice('of-whom', 'Contributor', (value) => { wanted.contributor = value === '' ? null : value.slice(1); });
  const unseen = choice('of-unseen', 'Tested unseen', (value) => { wanted.unseen = value || null; });
  unseen.append(...[['', 'all'], ['wrong', 'wrong'], ['right', 'right'], ['silent', 'nothing is said']].map(([value, words]) => element('option', { value }, words)));
  const words = element('p', { class: 'quiet', id: 'rows-count', role: 'status' });
  const back = element('button', { type: 'button', id: 'page-back', 'aria-label': 'The page before', onclick: () => turn(-1) }, '‹');
  const forth = element('button', { type: 'button', id: 'page-forth', 'aria-label': 'The next page', onclick: () => turn(1) }, '›');
  const head = element('thead');
  const rows = element('tbody');
  const grid = element('table', { role: 'grid', id: 'rows', tabindex: 0, 'aria-label': 'Examples' }, head, rows);
  const actions = element('div', { class: 'row answers' });
  const view = element('section', { class: 'sheet' }, element('div', { class: 'card' },
    element('div', { class: 'row filters' }, element('label', { class: 'grow' }, element('kbd', {}, '/'), search),
      ...[['Class', label], ['Contributor', who], ['Tested unseen', unseen]].map(([name, one]) => element('label', {}, `${name} `, one))),
    element('div', { class: 'wide', tabindex: -1 }, grid),
    element('div', { class: 'row pager' }, back, forth, words), actions));

  function choice(id, name, set) {
    const made = element('select', { id, onchange: () => { set(made.value); begin(); } });
    return made;
  }

  // -- loading ---------------------------------------------------------------------------------

  async function load() {
    const turn = (asked += 1);
    const answer = await post('/api/rows', wanted);
    if (turn !== asked) return;
    if (wanted.contributor != null && !answer.contributors.includes(wanted.contributor)) {
      wanted.contributor = null;
      await load();
      return;
    }
    if (!answer.rows.length && answer.found) {
      wanted.offset = Math.floor((answer.found - 1) / PAGE) * PAGE;
      await load();
      return;
    }
    const before = found.rows[at]?.id;
    found = answer;
    const same = found.rows.findIndex((one) => one.id === before);
    at = Math.max(Math.min(same >= 0 ? same : at, found.rows.length - 1), 0);
    show();
  }

  /** A class that is gone is no filter any more. */
  function changed() {
    if (wanted.label == null || studio.classes.some((one) => one.label === wanted.label)) return;
    wanted.label = null;
    if (!view.hidden) ask();
  }

  const ask = () => load().catch((error) => studio.say(error.message));

  /** Another question: from its first row. */
  function begin() {
    wanted.offset = at = 0;
    found.rows = [];
    return ask();
  }

  function later() {
    clearTimeout(waiting);
    waiting = setTimeout(() => { wanted.search = search.value; begin(); }, 150);
  }

  // -- what is shown ---------------------------------------------------------------------------

  function show() {
    studio.calm();
    const from = found.found ? wanted.offset + 1 : 0;
    const to = wanted.offset + found.rows.length;
    const all = found.found === found.total ? '' : ` (of ${found.total.toLocaleString('en')})`;
    words.textContent = `${from.toLocaleString('en')} to ${to.toLocaleString('en')} of ${found.found.toLocaleString('en')}${all}`;
    back.disabled = !wanted.offset;
    forth.disabled = to >= found.found;
    options(label, [['', 'all'], ...studio.classes.map((one, i) => [String(i), String(one.label)])], studio.classes.findIndex((one) => one.label === wanted.label));
    options(who, [['', 'everyone'], ...found.contributors.map((one) => [`.${one}`, one || 'nobody'])], wanted.contributor == null ? -1 : found.contributors.indexOf(wanted.contributor));
    head.replaceChildren(element('tr', {}, ...[...OWN.map(([name, title]) => column(name, title)), prose(), studio.state.pictures ? element('th', { scope: 'col' }, 'picture') : null, ...found.columns.map((name, i) => column(wanted.first + i, name)), more()].filter(Boolean)));
    rows.replaceChildren(...found.rows.map(row));
    grid.setAttribute('aria-rowcount', String(found.found + 1));
    choose(at);
  }

  function options(select, pairs, index) {
    select.replaceChildren(...pairs.map(([value, text]) => element('option', { value }, text)));
    select.selectedIndex = index + 1;
  }

  function column(sort, title) {
    const sorted = wanted.sort === sort;
    return element('th', { scope: 'col', 'aria-sort': sorted ? (wanted.down ? 'descending' : 'ascending') : 'none', class: typeof sort === 'number' ? 'number' : '' },
      element('button', { type: 'button', 'data-sort': sort, onclick: () => sortBy(sort) }, title, element('span', { 'aria-hidden': 'true' }, sorted ? (wanted.down ? ' ↓' : ' ↑') : '')));
  }

  const prose = () => (found.rows.some((one) => one.text != null) ? element('th', { scope: 'col' }, 'text') : null);

  function more() {
    const count = found.columns.length;
    if (!found.features || found.features <= count) return null;
    return element('th', { class: 'quiet' }, `columns ${wanted.first + 1} – ${wanted.first + count} of ${found.features} `, element('kbd', {}, '['), element('kbd', {}, ']'));
  }

  function row(one, i) {
    const classes = studio.state.classes.length > 0;
    const mark = (value) => (classes && value != null ? swatch(studio.slot(value)) : null);
    const said = { right: 'right', wrong: 'wrong', silent: '–' }[one.unseen] ?? '';
    return element('tr', { id: `row-${i}`, 'aria-rowindex': wanted.offset + i + 2, onclick: () => { choose(i); grid.focus(); } },
      element('th', { scope: 'row' }, String(one.id)),
      element('td', { class: 'text' }, mark(one.label), String(one.label)),
      element('td', { class: 'text' }, mark(one.predicted), one.predicted == null ? '' : String(one.predicted)),
      element('td', { class: `text ${one.unseen ?? ''}` }, said),
      element('td', { class: 'text' }, one.contributor ?? ''),
      one.text == null ? null : element('td', { class: 'text prose', title: one.text }, one.text),
      studio.state.pictures ? element('td', { class: 'small-picture' }, element('img', { src: pictureOf(one.id), alt: '', loading: 'lazy' })) : null,
      ...one.values.map((value) => element('td', {}, shownValue(value))));
  }

  function choose(i) {
    at = i;
    studio.calm();
    [...rows.children].forEach((one, k) => one.setAttribute('aria-selected', String(k === i)));
    if (rows.children[i]) {
      grid.setAttribute('aria-activedescendant', `row-${i}`);
      rows.children[i].scrollIntoView({ block: 'nearest' });
    } else grid.removeAttribute('aria-activedescendant');
    showActions();
  }

  const chosen = () => found.rows[at] ?? null;

  function showActions() {
    const one = chosen();
    const button = (key, text, run, kind = '') => element('button', { type: 'button', class: kind, onclick: run }, element('kbd', {}, key), ` ${text}`);
    actions.replaceChildren(...(one ? [element('span', { id: 'chosen-row' }, `${one.id}:`),
      ...labelButtons(studio, { give: relabel, except: [one.label] }),
      button('N', 'New class', newClass), button('Delete', studio.armed === one.id ? 'For ever?' : 'Forget', forget, 'end')] : [element('span', { class: 'quiet' }, 'There is no such example.')]));
  }

  // -- acts ------------------------------------------------------------------------------------

  function relabel(to) {
    const one = chosen();
    if (one && one.label !== to) studio.act({ verb: 'relabel', ids: [one.id], y: to }, () => `${one.id} is ${to} now.`);
  }

  async function newClass() {
    if (!chosen()) return;
    const to = await askClass(studio);
    if (to != null) relabel(to);
  }

  async function any() {
    const one = chosen();
    const to = one && await pickClass(studio, { title: `What is ${one.id}?`, except: [one.label] });
    if (to != null) relabel(to);
  }

  function forget() {
    const one = chosen();
    if (!one) return;
    if (!studio.sure(one.id, `Forget ${one.id} for ever?`)) return;
    studio.act({ verb: 'forget', ids: [one.id], confirm: true }, () => 'Forgotten for ever: 1 example.');
  }

  /** First up, then down, then as in the file. */
  function sortBy(sort) {
    if (wanted.sort !== sort) [wanted.sort, wanted.down] = [sort, false];
    else if (!wanted.down) wanted.down = true;
    else [wanted.sort, wanted.down] = [null, false];
    begin().then(() => head.querySelector(`[data-sort="${sort}"]`)?.focus());
  }

  async function turn(pages, to = null) {
    const last = Math.max(Math.floor((found.found - 1) / PAGE), 0) * PAGE;
    const offset = to === 'end' ? last : to === 'begin' ? 0 : Math.min(Math.max(wanted.offset + pages * PAGE, 0), last);
    at = to === 'end' ? PAGE - 1 : to === 'begin' ? 0 : at;
    found.rows = [];
    wanted.offset = offset;
    await ask();
  }

  function step(by) {
    if (found.rows[at + by]) choose(at + by);
    else if (by > 0 && !forth.disabled) { at = 0; turn(1); } else if (by < 0 && !back.disabled) { at = PAGE - 1; turn(-1); }
  }

  function shift(by) {
    const first = Math.max(wanted.first + by * found.columns.length, 0);
    if (first < (found.features ?? 0)) { wanted.first = first; ask(); }
  }

  function onSearchKey(event) {
    if (!['Enter', 'Escape', 'ArrowDown'].includes(event.key)) return;
    event.preventDefault();
    grid.focus();
  }

  function key(event) {
    const onHead = event.target.matches?.('thead button') && ['Enter', ' '].includes(event.key);
    if (onHead) return false;
    const run = {
      ArrowUp: () => step(-1), ArrowDown: () => step(1), PageUp: () => turn(-1), PageDown: () => turn(1),
      Home: () => turn(0, 'begin'), End: () => turn(0, 'end'), Delete: forget, Backspace: forget,
      '/': () => search.focus(), '[': () => shift(-1), ']': () => shift(1), n: newClass, N: newClass, l: any, L: any,
    }[event.key];
    const number = /^[1-9]$/.test(event.key);
    const one = number ? studio.classAt(event.key) : null;
    if (run) run();
    else if (one) relabel(one.label);
    else if (!number) return false;
    return true;
  }

  return { name: 'table', title: 'Table', shortcut: 't', element: view, keys: KEYS, load, changed, key, armed: showActions };
}

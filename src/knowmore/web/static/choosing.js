// Choosing a class, of two or of two hundred: the same buttons and the same list in every view.

import { swatch } from './draw.js';
import { element, plural } from './page.js';

// Classes that have a number key, and a button of their own.
const FIRST = 9;
/** A key of every view. */
export const ANY = ['L', 'any class: type to find it, or to name a new one'];

/**
 * The classes that have a number key, in the order of their keys: of many the likeliest.
 * @param likely labels, the likeliest first
 */
export function keyed(studio, likely = [], except = []) {
  if (studio.classes.length <= FIRST || !likely.length) return studio.classes.slice(0, FIRST);
  return likeliest(studio, likely).filter((one) => !except.includes(one.label)).slice(0, FIRST);
}

/** All classes, the likeliest first. */
function likeliest(studio, likely) {
  const place = (one) => (likely.includes(one.label) ? likely.indexOf(one.label) : likely.length);
  return [...studio.classes].sort((a, b) => place(a) - place(b));
}

/**
 * Buttons that give a label: one for each of the first classes, and one for all.
 * @param likely labels, the likeliest first: of more classes than keys these have one
 * @param give takes a label
 * @param except labels that need no button
 * @param hint is called with a label that may be given soon
 * @param always whether there is a button for all, however few they are
 * @param any opens the list of all classes; by default `pickClass`, and then `give`
 */
export function labelButtons(studio, { give, except = [], likely = [], hint = null, any = null, always = false }) {
  const all = studio.classes;
  const made = keyed(studio, likely, except).map((one, i) => [one, i]).filter(([one]) => !except.includes(one.label)).map(([one, i]) => {
    const on = hint ? { onmouseenter: () => hint(one.label), onfocus: () => hint(one.label) } : {};
    return element('button', { type: 'button', class: 'label', onclick: () => give(one.label), ...on }, element('kbd', {}, String(i + 1)), swatch(one.slot), element('span', { class: 'name' }, String(one.label)));
  });
  const open = any ?? (async () => {
    const label = await pickClass(studio, { except, likely });
    if (label != null) give(label);
  });
  if (all.length <= FIRST && !always) return made;
  const words = all.length > FIRST ? `All ${plural(all.length, 'class', 'classes')} …` : 'Another …';
  return [...made, element('button', { type: 'button', class: 'label all-classes', onclick: open }, element('kbd', {}, 'L'), ` ${words}`)];
}

/**
 * Let somebody choose a class from a list that narrows while they type; the last row makes a new one.
 * @returns {Promise<string | number | boolean | null>} its label, or null
 */
export function pickClass(studio, { title = 'Which class?', except = [], likely = [] } = {}) {
  const [dialog, input, list] = ['pick', 'pick-input', 'pick-list'].map((id) => studio.find(id));
  const numbers = studio.classes.some((one) => typeof one.label === 'number');
  let rows = [];
  let at = 0;
  let picked = null;

  function found() {
    const text = input.value.trim();
    const part = text.toLowerCase();
    const place = (one) => String(one.label).toLowerCase().indexOf(part);
    const known = likeliest(studio, likely).filter((one) => !except.includes(one.label) && place(one) >= 0).sort((a, b) => Math.min(place(a), 1) - Math.min(place(b), 1));
    const same = studio.classes.some((one) => String(one.label) === text);
    const fresh = text && !same && (!numbers || Number.isFinite(Number(text))) ? [{ fresh: true, label: numbers ? Number(text) : text }] : [];
    return [...known, ...fresh];
  }

  function show() {
    rows = found();
    at = Math.max(Math.min(at, rows.length - 1), 0);
    list.replaceChildren(...rows.map((one, i) => element('li', {
      role: 'option', id: `pick-${i}`, class: one.fresh ? 'fresh' : '', 'aria-selected': String(i === at), onclick: () => take(i), onpointermove: () => move(i),
    }, ...(one.fresh ? [element('b', {}, '+ New class '), element('span', { class: 'name' }, String(one.label))]
      : [swatch(one.slot), element('span', { class: 'name' }, String(one.label)), element('span', { class: 'quiet' }, plural(one.count))]))));
    if (!rows.length) list.append(element('li', { role: 'option', 'aria-selected': 'false', 'aria-disabled': 'true', class: 'quiet' }, numbers ? 'No class has this number; the labels of this model are numbers.' : 'Type a name.'));
    move(at);
  }

  function move(to) {
    at = to;
    [...list.children].forEach((one, i) => one.setAttribute('aria-selected', String(i === at && i < rows.length)));
    if (rows.length) input.setAttribute('aria-activedescendant', `pick-${at}`);
    else input.removeAttribute('aria-activedescendant');
  }

  function take(i) {
    if (!rows[i]) return;
    picked = rows[i].label;
    dialog.close();
  }

  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.length) {
      move((at + step + rows.length) % rows.length);
      list.children[at].scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') take(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  studio.find('pick-title').textContent = title;
  input.value = '';
  input.oninput = () => { at = 0; show(); };
  input.onkeydown = onKey;
  show();
  dialog.showModal();
  input.focus();
  return new Promise((done) => {
    dialog.addEventListener('close', () => {
      // Names of classes may be forgotten in a moment.
      list.replaceChildren();
      input.value = '';
      done(picked);
    }, { once: true });
  });
}

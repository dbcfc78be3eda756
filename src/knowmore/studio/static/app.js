// What all views share: the state of the file, events, edits, keys, and words for what happened.

import { edit, get } from './api.js';
import { history } from './history.js';
import { inbox } from './inbox.js';
import { element, percent, plural } from './page.js';
import { plane } from './plane.js';

const find = (id) => document.getElementById(id);

/** Everything that a view may use of the others. */
class Studio {
  state = null;
  view = null;
  views = [];
  /** Classes that have a name but no example yet. */
  pending = [];
  slots = new Map();
  #loading = null;
  #again = false;
  #acting = Promise.resolve();
  #own = new Set();

  say(words) {
    find('live').textContent = words;
  }

  // -- classes ---------------------------------------------------------------------------------

  /** The number of the colour and shape of a class: it stays when other classes come and go. */
  slot(label) {
    const key = JSON.stringify(label);
    if (!this.slots.has(key)) {
      const used = new Set(this.slots.values());
      let free = 0;
      while (used.has(free)) free += 1;
      this.slots.set(key, free);
      localStorage.setItem(`slots ${this.state?.name}`, JSON.stringify([...this.slots]));
    }
    return this.slots.get(key);
  }

  /** All classes, in the order of their keys. */
  get classes() {
    const known = this.state.classes.map((one) => ({ ...one, slot: this.slot(one.label) }));
    const have = new Set(known.map((one) => JSON.stringify(one.label)));
    for (const label of this.pending) {
      if (have.has(JSON.stringify(label))) continue;
      known.push({ label, count: 0, loo_accuracy: null, slot: this.slot(label) });
    }
    return known.sort((a, b) => a.slot - b.slot);
  }

  // -- loading ---------------------------------------------------------------------------------

  /** Look at the file again; whoever asks while that is under way is told when all is new. */
  refresh() {
    if (this.#loading) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #load() {
    do {
      this.#again = false;
      try {
        const [, state] = await Promise.all([this.view?.load(), get('/api/state')]);
        this.show(state);
      } catch (error) {
        this.say(error.message);
      }
    } while (this.#again);
  }

  show(state) {
    this.state = state;
    const named = new Set([...state.classes.map((one) => one.label), ...this.pending].map((one) => JSON.stringify(one)));
    // A class that is gone leaves its colour to the next.
    for (const key of this.slots.keys()) if (!named.has(key)) this.slots.delete(key);
    document.title = `${state.name} · knowmore studio`;
    find('file').textContent = state.name;
    const last = state.undo && !['forget', 'remove-support'].includes(state.undo.verb);
    describe(find('undo'), last ? state.undo : null, 'Undo');
    describe(find('redo'), state.redo, 'Redo');
    for (const one of this.views) one.changed?.(state);
  }

  // -- editing ---------------------------------------------------------------------------------

  /** Make an edit and show what came of it. @returns {Promise<any>} its answer, or null */
  act(body, words) {
    const acting = this.#act(body, words);
    this.#acting = Promise.all([this.#acting, acting]);
    return acting;
  }

  async #act(body, words) {
    const before = this.state.number;
    try {
      const answer = await (this.view.edit ?? edit)(body);
      // An edit may have several entries, and an undo has none.
      for (let one = before + 1; one <= answer.number; one += 1) this.#own.add(one);
      this.#own.add(answer.number);
      await this.refresh();
      const right = this.state.loo_accuracy;
      this.say(`${words(answer)}${right == null ? '' : ` Right if unseen: ${percent(right)}.`}`);
      return answer;
    } catch (error) {
      const nothing = error.status === 507 ? ' Nothing was changed; what was confirmed is kept.' : '';
      await this.refresh();
      this.say(`${error.message}${nothing}`);
      return null;
    }
  }

  /** An event of the stream: an edit of this page, or of somebody else. */
  async heard({ number, verb, count }) {
    await this.#acting;
    if (number === this.state.number || this.#own.has(number)) return;
    await this.refresh();
    if (verb) this.say(`Elsewhere: ${verb} of ${plural(count)}.`);
  }

  undo() {
    const { undo } = this.state;
    return this.act({ verb: 'undo' }, () => `Undone: ${undo.verb} of ${plural(undo.count)}.`);
  }

  redo() {
    const { redo } = this.state;
    return this.act({ verb: 'redo' }, () => `Done again: ${redo.verb} of ${plural(redo.count)}.`);
  }

  /** Ask for a name, or for consent. @returns {Promise<string | boolean | null>} */
  ask({ title, words = '', name = null, yes = 'Do it' }) {
    const dialog = find('ask');
    find('ask-title').textContent = title;
    find('ask-words').textContent = words;
    find('ask-field').hidden = name == null;
    find('ask-input').value = name ?? '';
    find('ask-yes').textContent = yes;
    dialog.returnValue = 'no';
    dialog.showModal();
    if (name != null) find('ask-input').select();
    return new Promise((done) => {
      dialog.addEventListener('close', () => {
        const agreed = dialog.returnValue === 'yes';
        done(name == null ? agreed : agreed ? find('ask-input').value.trim() : null);
      }, { once: true });
    });
  }

  // -- views -----------------------------------------------------------------------------------

  async open(view) {
    if (this.view === view) return;
    this.view?.leave?.();
    this.view = view;
    for (const one of this.views) {
      one.element.hidden = one !== view;
      one.tab.setAttribute('aria-selected', String(one === view));
      one.tab.tabIndex = one === view ? 0 : -1;
    }
    window.history.replaceState(null, '', `#${view.name}`);
    await this.refresh();
  }
}

function describe(button, entry, word) {
  button.disabled = !entry;
  button.title = entry ? `${word} ${entry.verb} of ${plural(entry.count)}` : `There is nothing to ${word.toLowerCase()}`;
}

const studio = new Studio();
// For whoever looks at the page from outside, such as tests.
window.studio = studio;

// -- keys --------------------------------------------------------------------------------------

const KEYS = [
  ['U', 'undo the last edit'],
  ['R', 'do again what was undone'],
  ['P, I, H', 'the plane, the inbox, the history'],
  ['?', 'these keys'],
];

function showKeys() {
  const list = element('dl');
  for (const [key, words] of [...(studio.view?.keys ?? []), ...KEYS]) {
    list.append(element('dt', {}, element('kbd', {}, key)), element('dd', {}, words));
  }
  find('keys-list').replaceChildren(list);
  find('keys').showModal();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const writes = event.target.matches?.('input:not([type=checkbox], [type=range]), textarea, select');
  if (writes || !studio.state) return;
  if (studio.view?.key?.(event)) {
    event.preventDefault();
    return;
  }
  const key = event.key.toLowerCase();
  const view = studio.views.find((one) => one.shortcut === key && !one.tab.disabled);
  if (key === 'u' && !find('undo').disabled) studio.undo();
  else if (key === 'r' && !find('redo').disabled) studio.redo();
  else if (key === '?') showKeys();
  else if (view) studio.open(view);
  else return;
  event.preventDefault();
}

// -- events ------------------------------------------------------------------------------------

function listen() {
  const source = new EventSource(`/events?after=${studio.state.number}`);
  const heard = (event) => studio.heard(JSON.parse(event.data));
  source.addEventListener('edit', heard);
  source.addEventListener('resync', heard);
  source.onopen = () => {
    find('away').hidden = true;
  };
  source.onerror = () => {
    const ended = source.readyState === EventSource.CLOSED;
    find('away').textContent = ended
      ? 'The studio has ended or was started again. Every edit that was confirmed is in the file. Open the address that it prints.'
      : 'The studio does not answer. Every edit that was confirmed is in the file. Trying again …';
    find('away').hidden = false;
  };
}

// -- the start ---------------------------------------------------------------------------------

function addView(view) {
  view.tab = element('button', {
    type: 'button', role: 'tab', id: `tab-${view.name}`, 'aria-controls': view.name, onclick: () => studio.open(view),
  }, view.title);
  view.element.id = view.name;
  view.element.setAttribute('role', 'tabpanel');
  view.element.setAttribute('aria-labelledby', `tab-${view.name}`);
  view.element.hidden = true;
  find('tabs').append(view.tab);
  find('main').append(view.element);
  studio.views.push(view);
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const open = studio.views.filter((one) => !one.tab.disabled);
  const next = open.at((open.indexOf(studio.view) + step) % open.length);
  studio.open(next);
  next.tab.focus();
  event.stopPropagation();
  event.preventDefault();
}

async function start() {
  const state = await get('/api/state');
  for (const [key, slot] of JSON.parse(localStorage.getItem(`slots ${state.name}`) ?? '[]')) {
    studio.slots.set(key, slot);
  }
  studio.state = state;
  for (const make of [plane, inbox, history]) addView(make(studio));
  studio.views[0].tab.disabled = !state.plane.possible;
  studio.show(state);
  find('undo').addEventListener('click', () => studio.undo());
  find('redo').addEventListener('click', () => studio.redo());
  find('help').addEventListener('click', showKeys);
  find('tabs').addEventListener('keydown', onTabKey);
  document.addEventListener('keydown', onKey);
  const wanted = studio.views.find((one) => `#${one.name}` === location.hash && !one.tab.disabled);
  await studio.open(wanted ?? studio.views.find((one) => !one.tab.disabled));
  listen();
  document.body.dataset.ready = 'yes';
}

start().catch((error) => studio.say(error.message));

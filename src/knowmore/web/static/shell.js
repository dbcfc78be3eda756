// What all views share: the state of the file, edits, keys, and words for what happened.

import { edit, get, post } from './api.js';
import { about, element, plural, unseen } from './page.js';

const KEYS = [
  ['U', 'undo the last edit'],
  ['R', 'do again what was undone'],
  ['?', 'these keys'],
];

// An undo of more examples than this is no slip of a key.
const MANY = 20;

/**
 * Everything that a view may use of the others.
 * @param root the document, or the part of one that the page is in
 */
export class Studio {
  state = null;
  view = null;
  views = [];
  /** What the next Delete would forget for ever: see `sure`. */
  armed = null;
  #loading = null;
  #silence = 0;
  #calm = 0;
  #again = false;
  #acting = Promise.resolve();
  #own = new Set();
  #offering = Promise.resolve();
  #slots = new Map();
  #makers = [];
  /** The last entry when this page was opened. */
  #since = 0;

  constructor(root) {
    this.root = root;
  }

  find(id) {
    return this.root.getElementById(id);
  }

  say(words, lasts = false) {
    this.find('live').textContent = words;
    clearTimeout(this.#silence);
    // What was said of an edit long ago would be taken for news.
    if (!lasts) this.#silence = setTimeout(() => { this.find('live').textContent = ''; }, 20_000);
  }

  /** Whether this was asked for a moment ago as well: what cannot be taken back is said twice. */
  sure(what, words) {
    const again = this.armed === what;
    this.calm();
    if (again) return true;
    this.armed = what;
    this.#calm = setTimeout(() => this.calm(), 10_000);
    this.say(`${words} Press Delete again; Escape keeps it.`);
    this.view.armed?.();
    return false;
  }

  /** Nothing is about to be forgotten. */
  calm() {
    if (this.armed == null) return;
    clearTimeout(this.#calm);
    this.armed = null;
    this.say('');
    this.view?.armed?.();
  }

  // -- classes ---------------------------------------------------------------------------------

  /** The class of a number key, or null. */
  classAt(key) {
    const found = this.classes[Number(key) - 1] ?? null;
    if (!found) this.say(`There is no class ${key} yet. N makes one.`);
    return found;
  }

  /** Offer a class that has no example yet. */
  offer(label) {
    this.state.offered.push({ label, slot: this.slot(label) });
    this.#offering = post('/api/classes', { label }).catch((error) => this.say(error.message));
  }

  /** The number of the colour and shape of a class; one of an earlier state gets any that is free. */
  slot(label) {
    const key = JSON.stringify(label);
    if (!this.#slots.has(key)) {
      const used = new Set(this.#slots.values());
      let free = 0;
      while (used.has(free)) free += 1;
      this.#slots.set(key, free);
    }
    return this.#slots.get(key);
  }

  /** All classes, in the order of their keys. */
  get classes() {
    const offered = this.state.offered.map((one) => ({ ...one, count: 0, loo_accuracy: null }));
    return [...this.state.classes, ...offered].sort((a, b) => a.slot - b.slot);
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

  /** Say what takes long, if it does. @param words what is waited for @returns a function that ends it */
  waiting(words, after = 300) {
    const place = this.find('busy');
    const begin = setTimeout(() => {
      this.find('busy-words').textContent = words;
      place.hidden = false;
      this.find('main').setAttribute('aria-busy', 'true');
    }, after);
    return () => {
      clearTimeout(begin);
      place.hidden = true;
      this.find('main').removeAttribute('aria-busy');
    };
  }

  async #load() {
    const end = this.waiting(this.view?.busy?.() ?? `Looking at ${plural(this.state.n)} …`);
    try {
      await this.#loadAll();
    } finally {
      end();
    }
  }

  async #loadAll() {
    do {
      this.#again = false;
      try {
        const offering = this.#offering;
        const [, state] = await Promise.all([this.view?.load(), offering.then(() => get('/api/state'))]);
        // A class that was offered meanwhile is not in it.
        if (offering === this.#offering) this.show(state);
        else this.#again = true;
      } catch (error) {
        this.say(error.message);
      }
    } while (this.#again);
  }

  show(state) {
    const forgot = state.forgotten > this.state.forgotten;
    this.state = state;
    this.#slots = new Map(this.classes.map((one) => [JSON.stringify(one.label), one.slot]));
    if (forgot) this.#letGo();
    this.find('file').textContent = state.name;
    const last = state.undo && !['forget', 'remove-support'].includes(state.undo.verb);
    describe(this.find('undo'), last ? state.undo : null, 'Undo', state.undo && !last ? ': what was forgotten for ever stays so' : '');
    describe(this.find('redo'), state.redo, 'Redo');
    for (const one of this.views) {
      one.tab.disabled = one.possible?.(state) === false;
      one.changed?.(state);
    }
  }

  /** Something was forgotten: views that are not open begin anew, since they may still show it. */
  #letGo() {
    performance.clearResourceTimings();
    this.views.forEach((old, i) => {
      if (old === this.view) return;
      old.end.abort();
      const view = this.#made(this.#makers[i]);
      old.element.replaceWith(view.element);
      old.tab.replaceWith(view.tab);
      this.views[i] = view;
    });
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
      const answer = await ((body.verb !== 'tune' && this.view.edit) || edit)(body);
      // An edit may have several entries, and an undo has none.
      for (let one = before + 1; one <= answer.number; one += 1) this.#own.add(one);
      this.#own.add(answer.number);
      await this.refresh();
      const right = this.state.loo_accuracy;
      this.say(`${words(answer)} ${answer.warning}${right == null ? '' : ` ${unseen(right)}.`}`, !!answer.warning);
      return answer;
    } catch (error) {
      await this.refresh();
      this.say(error.message);
      return null;
    }
  }

  /** An event of the stream: an edit of this page, or of somebody else. */
  /** Look for better settings; the bar follows. */
  async tune() {
    const before = this.state.number;
    const end = this.waiting('Looking for better settings …', 0);
    let done = false;
    (async () => {
      while (!done) {
        await new Promise((soon) => setTimeout(soon, 400));
        const { doing, share } = await get('/api/progress').catch(() => ({}));
        if (!done && doing) this.find('busy-words').textContent = `${doing}${share == null ? '' : `: ${Math.round(100 * share)} %`} …`;
      }
    })();
    const words = (answer) => (answer.number === before ? 'No better settings were found: all stays as it was.' : 'Better settings were found; U takes them back.');
    try {
      return await this.act({ verb: 'tune' }, words);
    } finally {
      done = true;
      end();
    }
  }

  async heard({ number, verb, count }) {
    await this.#acting;
    if (number === this.state.number || this.#own.has(number)) return;
    await this.refresh();
    if (verb) this.say(`Elsewhere: ${verb} of ${plural(count)}.`);
  }

  /** Undo; what was there before this page, or is of many examples, only by consent. */
  async undo() {
    const { undo } = this.state;
    const old = undo?.number <= this.#since;
    if (old || undo?.count > MANY) {
      const when = new Date(undo.at).toLocaleString();
      const words = `It was made ${old ? `before this page was opened, on ${when}` : `on ${when}`}. R does it again, as long as nothing else is edited.`;
      if (!(await this.ask({ title: `Undo ${about(undo)}?`, words, yes: 'Undo it' }))) return null;
    }
    return this.act({ verb: 'undo' }, () => `Undone: ${about(undo)}.`);
  }

  redo() {
    const { redo } = this.state;
    return this.act({ verb: 'redo' }, () => `Done again: ${about(redo)}.`);
  }

  /** Ask for a name, or for consent. @returns {Promise<string | boolean | null>} */
  ask({ title, words = '', more = null, name = null, yes = 'Do it' }) {
    const dialog = this.find('ask');
    this.find('ask-title').textContent = title;
    this.find('ask-words').textContent = words;
    this.find('ask-more').replaceChildren(...(more ? [more] : []));
    this.find('ask-field').hidden = name == null;
    this.find('ask-input').value = name ?? '';
    this.find('ask-yes').textContent = yes;
    dialog.returnValue = 'no';
    dialog.showModal();
    if (name != null) this.find('ask-input').select();
    // What cannot be taken back is not a matter of one key.
    else dialog.querySelector('[value=no]').focus();
    return new Promise((done) => {
      dialog.addEventListener('close', () => {
        const agreed = dialog.returnValue === 'yes';
        const given = this.find('ask-input').value.trim();
        // It may be about something that is forgotten in a moment.
        for (const part of ['title', 'words']) this.find(`ask-${part}`).textContent = '';
        this.find('ask-more').replaceChildren();
        this.find('ask-input').value = '';
        done(name == null ? agreed : agreed ? given : null);
      }, { once: true });
    });
  }

  // -- views -----------------------------------------------------------------------------------

  async open(view) {
    if (this.view === view) return;
    this.calm();
    if (this.view) this.say('');
    this.view?.leave?.();
    this.view = view;
    for (const one of this.views) {
      one.element.hidden = one !== view;
      one.tab.setAttribute('aria-selected', String(one === view));
      one.tab.tabIndex = one === view ? 0 : -1;
    }
    this.opened?.(view);
    await this.refresh();
  }

  #made(make) {
    const end = new AbortController();
    const view = Object.assign(make(this, end.signal), { end });
    view.tab = element('button', {
      type: 'button', role: 'tab', id: `tab-${view.name}`, 'aria-controls': view.name, 'aria-selected': 'false', tabindex: -1, onclick: () => this.open(view),
    }, view.title);
    view.element.id = view.name;
    view.element.setAttribute('role', 'tabpanel');
    view.element.setAttribute('aria-labelledby', `tab-${view.name}`);
    view.element.hidden = true;
    return view;
  }

  #onTabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const open = this.views.filter((one) => !one.tab.disabled);
    const next = open.at((open.indexOf(this.view) + step) % open.length);
    this.open(next);
    next.tab.focus();
    event.stopPropagation();
    event.preventDefault();
  }

  // -- keys ------------------------------------------------------------------------------------

  #showKeys() {
    const list = element('dl');
    const all = this.views.filter((one) => !one.tab.disabled).map((one) => [one.shortcut.toUpperCase(), `the ${one.title.toLowerCase()}`]);
    for (const [key, words] of [...(this.view?.keys ?? []), ...KEYS, ...all]) {
      list.append(element('dt', {}, element('kbd', {}, key)), element('dd', {}, words));
    }
    this.find('keys-list').replaceChildren(list);
    this.find('keys').showModal();
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.root.querySelector('dialog[open]')) return;
    const writes = event.target.matches?.('input:not([type=checkbox], [type=range]), textarea, select');
    if (writes || !this.state) return;
    // A key that is held down repeats itself, which is no second answer.
    if (event.repeat && !/^(Arrow|Page|\[|\])/.test(event.key)) {
      event.preventDefault();
      return;
    }
    if (event.key === 'Escape' && this.armed != null) {
      this.calm();
      event.preventDefault();
      return;
    }
    if (this.view?.key?.(event)) {
      event.preventDefault();
      return;
    }
    const key = event.key.toLowerCase();
    const view = this.views.find((one) => one.shortcut === key && !one.tab.disabled);
    const button = { u: this.find('undo'), r: this.find('redo') }[key];
    if (button?.disabled) this.say(`${button.title}.`);
    else if (key === 'u') this.undo();
    else if (key === 'r') this.redo();
    else if (key === '?') this.#showKeys();
    else if (view) this.open(view);
    else return;
    event.preventDefault();
  }

  // -- the start -------------------------------------------------------------------------------

  /**
   * Make the views and open one.
   * @param makers functions that make views, each of this and of a signal of the view's end
   * @param wanted a name
   */
  async start(makers, wanted = () => null) {
    const state = await get('/api/state');
    this.state = state;
    this.#since = state.number;
    this.#makers = makers;
    this.views = makers.map((make) => this.#made(make));
    this.find('tabs').append(...this.views.map((one) => one.tab));
    this.find('main').append(...this.views.map((one) => one.element));
    this.show(state);
    this.find('loading')?.remove();
    this.find('undo').addEventListener('click', () => this.undo());
    this.find('redo').addEventListener('click', () => this.redo());
    this.find('help').addEventListener('click', () => this.#showKeys());
    this.find('tabs').addEventListener('keydown', (event) => this.#onTabKey(event));
    this.root.addEventListener('keydown', (event) => this.#onKey(event));
    const open = this.views.filter((one) => !one.tab.disabled);
    if (open.length) await this.open(open.find((one) => one.name === wanted(state)) ?? open[0]);
    else this.say('This model cannot be seen so: that takes classes and at least two features.');
  }
}

function describe(button, entry, word, why = '') {
  button.disabled = !entry;
  button.title = entry ? `${word} ${about(entry)}` : `There is nothing to ${word.toLowerCase()}${why}`;
}

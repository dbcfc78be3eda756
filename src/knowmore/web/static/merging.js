// Another file of the same folder: what it would bring and change, then the act.

import { get, post } from './api.js';
import { classes, element, percent, plural } from './page.js';

/** @param {any} studio what all views share @returns a part of a view */
export function merging(studio) {
  let would = null;
  const names = element('datalist', { id: 'neighbours' });
  const name = element('input', { id: 'other', list: 'neighbours', maxlength: 200, placeholder: 'other.km', oninput: () => tell(null), onkeydown: onEnter });
  const look = element('button', { type: 'button', id: 'look', onclick: preview }, 'Preview');
  const does = element('button', { type: 'button', id: 'merge', class: 'primary', hidden: true, onclick: merge }, 'Merge');
  const words = element('div', { id: 'merge-words', role: 'status' });
  const there = element('p', { class: 'quiet' });
  const part = element('div', { class: 'merging' }, element('h2', {}, 'Merge another file'),
    element('div', { class: 'row' }, element('label', {}, 'Name ', name), names, look, does), there, words);

  async function load() {
    const { files } = await get('/api/merge/files');
    names.replaceChildren(...files.map((value) => element('option', { value })));
    there.textContent = files.length
      ? `In this folder: ${files.slice(0, 8).join(', ')}${files.length > 8 ? ` and ${files.length - 8} more` : ''}. Only these, by name, never a path.`
      : 'There is no other .km file in this folder; only such can be merged, by name.';
    if (would && would.number !== studio.state.number) tell(null);
  }

  function tell(found, ...said) {
    would = found;
    does.hidden = !found || found.clashes > 0;
    words.replaceChildren(...said);
  }

  async function preview() {
    try {
      const found = await post('/api/merge/preview', { name: name.value.trim() });
      const brings = `${plural(found.count)} would come${found.classes.length ? `, with ${classes(found.classes.length)} that ${found.classes.length === 1 ? 'is' : 'are'} new: ${found.classes.join(', ')}` : ', of no new class'}.`;
      if (found.clashes) {
        tell(found, element('p', {}, brings), element('p', { class: 'end', id: 'clashes' },
          `${plural(found.clashes, 'id')} ${found.clashes === 1 ? 'is' : 'are'} in both files, so they cannot be merged: ${found.clashing.slice(0, 12).join(', ')}${found.clashes > 12 ? ' …' : ''}`));
        return;
      }
      const list = found.flipping.slice(0, 50).map((one) => element('li', {}, element('b', {}, String(one.id)), ` ${one.file}: ${one.from} → ${one.to}`));
      tell(found, element('p', {}, brings),
        element('p', {}, 'Right when tested unseen: ', element('b', { id: 'merge-before' }, percent(found.accuracy_before)), ' here, ', percent(found.accuracy_theirs), ' there; together ', element('b', { id: 'merge-after' }, percent(found.accuracy_after)), '.'),
        element('p', { id: 'merge-flips' }, `${plural(found.flips, 'answer')} would change${found.flips > 50 ? ', these among them' : ''}${found.flips ? ':' : '.'}`), element('ul', { class: 'flips' }, ...list));
    } catch (error) {
      tell(null, element('p', { class: 'end' }, error.message));
    }
  }

  async function merge() {
    const other = name.value.trim();
    const { count } = would;
    const done = await studio.act({ verb: 'merge', name: other }, () => `${plural(count)} of ${other} are here now. Undo takes all of them back.`);
    if (done) tell(null);
  }

  function onEnter(event) {
    if (event.key === 'Enter') preview();
  }

  return { element: part, load };
}

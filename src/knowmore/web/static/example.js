// What is shown of an example, in every view: one place for each kind, such as pictures or columns.

import { element, plural, shownValue } from './page.js';

/** The address of the picture of an example. @param large to judge by */
export const pictureOf = (id, large = false) => `/api/thumbnail?id=${encodeURIComponent(JSON.stringify(id))}${large ? '&large=true' : ''}`;

/** The last part of a long name, such as that of a file in a folder. */
export const shortName = (id) => String(id).split('/').at(-1);

/**
 * An example as somebody can judge it.
 * @param shown what the studio says is shown of it: its `kind`, and what that kind needs
 * @param {string} src the address of its picture, if it is one
 */
export function exhibit(id, shown, src = pictureOf(id, true)) {
  const kinds = { picture: () => picture(id, src), text: () => prose(shown), features: () => features(shown.values, shown.count) };
  return element('div', { class: `exhibit ${shown.kind}` }, kinds[shown.kind]());
}

function picture(id, src) {
  const made = element('img', { class: 'asked', src, alt: `The picture ${id}` });
  // A point stands for a picture that is not where it was learnt from any more.
  made.addEventListener('load', () => {
    if (made.naturalWidth < 2) made.replaceWith(element('p', { class: 'quiet' }, 'The picture is not where it was learnt from any more.'));
  });
  return made;
}

/** A text, as it was written. */
function prose({ text, more }) {
  const rest = more ? element('span', { class: 'quiet' }, ` … and ${more.toLocaleString('en')} more characters`) : '';
  return element('blockquote', {}, element('p', {}, text), rest);
}

/**
 * Marks the words of a text: those that speak for what the others say, and those against it.
 * @param place where `exhibit` shows the text
 * @param {Array<{word: string, effect: number, places: number[][]}>} words
 */
export function markWords(place, text, words) {
  const paragraph = place.querySelector('.exhibit.text p');
  const most = Math.max(...words.map((one) => Math.abs(one.effect)), 0);
  if (!paragraph || !most) return;
  const marks = words.flatMap((one) => one.places.map((at) => ({ one, at }))).sort((a, b) => a.at[0] - b.at[0]);
  // Places count characters, of which JavaScript takes some for two.
  const letters = Array.from(text);
  const parts = [];
  let done = 0;
  for (const { one, at: [begin, end] } of marks) {
    if (begin < done || end > letters.length) continue;
    parts.push(letters.slice(done, begin).join(''));
    const mark = element('mark', { class: one.effect > 0 ? 'for' : 'against', title: `${one.effect > 0 ? 'for' : 'against'}: ${Math.abs(one.effect).toPrecision(2)} of the score` }, letters.slice(begin, end).join(''));
    mark.style.setProperty('--much', (Math.abs(one.effect) / most).toFixed(2));
    parts.push(mark);
    done = end;
  }
  paragraph.replaceChildren(...parts, letters.slice(done).join(''));
}

/** The first features of an example, and how many there are besides. */
function features(values, count) {
  const shown = Object.entries(values);
  const rows = shown.map(([name, value]) =>
    element('tr', {}, element('th', { scope: 'row' }, name), element('td', {}, shownValue(value))));
  const more = count > shown.length ? element('caption', {}, `and ${plural(count - shown.length, 'more column')}`) : null;
  return element('table', {}, more, element('tbody', {}, ...rows));
}

/** Small pictures of examples side by side, with a line below each. */
export function gallery(examples, words) {
  return element('ul', { class: 'near' }, ...examples.map((one) => element('li', { title: String(one.id) },
    element('img', { src: pictureOf(one.id), alt: String(one.id), loading: 'lazy' }), element('span', { class: 'quiet name' }, words(one)))));
}

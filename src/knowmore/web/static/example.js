// What is shown of an example, in every view: one place for each kind, such as pictures or columns.

import { element, plural } from './page.js';

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
  const kinds = { picture: () => picture(id, src), features: () => features(shown.values, shown.count) };
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

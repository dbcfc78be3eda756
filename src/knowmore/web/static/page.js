// Small things that every view needs.

/** An element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  // Browsers keep the values of fields in their files, to restore them.
  if (tag === 'input' || tag === 'select') made.setAttribute('autocomplete', 'off');
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((one) => one != null));
  return made;
}

const NARROW = '\u202f';
export const percent = (share) => (share == null ? '–' : `${(100 * share).toFixed(share === 1 ? 0 : 1)}${NARROW}%`);
/** How many are right without themselves, in plain words. */
export const UNSEEN = 'Each example is answered by a model that never saw it, and the answer is compared with its label';
export const unseen = (share) => (share == null ? 'not tested yet' : `${percent(share)} right when tested on each example unseen`);
export const plural = (count, word = 'example', more = `${word}s`) => `${count.toLocaleString('en')} ${count === 1 ? word : more}`;

/** What an entry of the journal did. */
export const about = ({ verb, count, id, label }) => (id == null ? `${verb} of ${plural(count)}` : `${verb} ${id}, ${verb === 'refuse' ? 'not ' : ''}${label}`);

export const classes = (count) => plural(count, 'class', 'classes');

/** Ask for the name of a class that may be new. @returns {Promise<string | number | null>} */
export async function askClass(studio) {
  const known = studio.classes.map((one) => one.label);
  const numbers = known.filter((one) => typeof one === 'number');
  let name = String(numbers.length ? Math.max(...numbers) + 1 : 'A');
  for (let i = 0; known.includes(name); i += 1) name = String.fromCharCode(65 + (i % 26)) + (i < 26 ? '' : Math.floor(i / 26));
  const given = await studio.ask({ title: 'A new class', name, yes: 'Make it' });
  if (!given) return null;
  return numbers.length ? Number(given) : given;
}

/** What a plane shows of a model of more features. */
export const sliceOf = ({ share }, features) => `two directions through ${features.toLocaleString('en')} features, which hold ${percent(share)} of the differences between the examples, as the model sees them`;

/** A warning in place of a plane that misleads. @param all shows it all the same */
export function misleading(part, features, all) {
  return [element('h2', {}, 'A picture of this model would mislead'),
    element('p', {}, `The plane shows only a slice: ${sliceOf(part, features)}. For ${percent(1 - part.agreement)} of the examples the colours would not be what the model says of them. The other views show it as it is.`),
    element('button', { type: 'button', class: 'anyway', onclick: all }, 'Show the slice all the same')];
}

/** Numbers with two digits, or with as many as tell those apart that differ. */
export function apart(values) {
  const count = (digits) => new Set(values.map((one) => one.toFixed(digits))).size;
  const digits = [2, 3, 4].find((one) => count(one) === count(4));
  return (one) => one.toFixed(digits);
}

/** A feature or a cell in a few characters; nothing for a blank. */
export function shownValue(value) {
  if (value == null) return '';
  return typeof value === 'number' ? String(Number(value.toPrecision(5))) : String(value);
}

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

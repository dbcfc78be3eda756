// Small things that every view needs.

/** An element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
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
export const plural = (count, word = 'example') => `${count} ${word}${count === 1 ? '' : 's'}`;

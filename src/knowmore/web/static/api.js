// Questions and edits. Every answer is about a state of the file, which its number tells.

/** An answer that is not what was asked for, in the words of the studio. */
export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

let ask = (path, options) => fetch(path, options);

/** Ask by other means than the network. @param means as `fetch` */
export function through(means) {
  ask = means;
}

async function answered(response) {
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refused(response.status, said.error ?? `The studio answered ${response.status}.`);
}

/** @param {string} path @returns {Promise<any>} JSON */
export async function get(path) {
  return (await answered(await ask(path))).json();
}

function sent(path, body, headers = {}) {
  const options = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
  return ask(path, options).then(answered);
}

/** Ask with JSON; nothing is edited but by `edit`. */
export async function post(path, body) {
  return (await sent(path, body)).json();
}

/** Edit the file. */
export async function edit(body) {
  return (await once('/api/edit', body)).json();
}

/** Edit the file. @returns the field that came of it, with the answer as its `edit` */
export async function editSeen(body, query) {
  return unpacked(await once(`/api/plane/edit?${new URLSearchParams(query)}`, body));
}

/** Whoever hears no answer asks again with the same key: it is done once. */
async function once(path, body) {
  const key = { 'Idempotency-Key': crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` };
  for (let turn = 0; ; turn += 1) {
    try {
      return await sent(path, body, key);
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (turn === 3) throw new Error('The studio does not answer. Whether this edit is in the file is not known: look at it again.');
      await new Promise((done) => setTimeout(done, 200 * 2 ** turn));
    }
  }
}

/** Bring a picture, which waits until it is learnt or dismissed. @param {File} file */
export async function bring(file) {
  if (file.size > 25e6) throw new Refused(413, `${file.name} has more than 25,000,000 bytes. Reduce it first.`);
  const headers = { 'Content-Type': 'application/octet-stream' };
  const path = `/api/pictures?${new URLSearchParams({ name: file.name.slice(-200) })}`;
  return (await answered(await ask(path, { method: 'POST', headers, body: file }))).json();
}

/**
 * The field over a grid: what wins at each place, its score, the variance, whether the place is
 * unknown, and the score of the second class.
 * @param {Record<string, number>} query bounds, w and h, and settings on trial
 */
export async function field(query) {
  return unpacked(await answered(await ask(`/api/plane/field?${new URLSearchParams(query)}`)));
}

/** The field, had examples other places. */
export async function movedField(body) {
  return unpacked(await sent('/api/plane/moved', body));
}

async function unpacked(response) {
  const bytes = await response.arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const m = header.w * header.h;
  let at = 4 + length;
  const take = (Kind) => {
    const part = bytes.slice(at, (at += m * Kind.BYTES_PER_ELEMENT));
    return new Kind(part);
  };
  if (!header.classes.length) return { ...header, empty: true };
  return {
    ...header,
    best: take(Uint8Array),
    score: take(Float32Array),
    variance: take(Float32Array),
    unknown: take(Uint8Array),
    second: take(Float32Array),
  };
}

// The page of a studio: its views, and what happens elsewhere.

import { get } from './api.js';
import { desk } from './desk.js';
import { history } from './history.js';
import { inbox } from './inbox.js';
import { element } from './page.js';
import { plane } from './plane.js';
import { questions } from './questions.js';
import { Studio } from './shell.js';
import { table } from './table.js';

const studio = new Studio(document);
// Nothing is kept in a browser: it would outlive what is forgotten. Earlier versions kept labels.
for (const key of Object.keys(localStorage)) if (/^(slots|pending) /.test(key)) localStorage.removeItem(key);
studio.opened = (view) => window.history.replaceState(null, '', `#${view.name}`);
// For whoever looks at the page from outside, such as tests.
window.studio = studio;

function listen() {
  const source = new EventSource(`/events?after=${studio.state.number}`);
  const heard = (event) => studio.heard(JSON.parse(event.data));
  source.addEventListener('edit', heard);
  source.addEventListener('resync', heard);
  source.onopen = () => {
    studio.find('away').hidden = true;
  };
  source.onerror = () => {
    const ended = source.readyState === EventSource.CLOSED;
    studio.find('away').textContent = ended
      ? 'The studio has ended or was started again. Every edit that was confirmed is in the file. Open the address that it prints.'
      : 'The studio does not answer. Every edit that was confirmed is in the file. Trying again …';
    studio.find('away').hidden = false;
  };
}

/** Wait until the file is open, and say what is done until then. */
async function opened() {
  for (;;) {
    const { open, doing } = await get('/api/progress');
    if (open) return;
    if (doing) studio.find('doing').textContent = `${doing} …`;
    await new Promise((soon) => setTimeout(soon, 150));
  }
}

/** One line, where other settings would help; it is asked for when the page is seen. */
async function advise() {
  const place = studio.find('advice');
  const { tune } = await get('/api/advice').catch(() => ({ tune: '' }));
  place.hidden = !tune;
  if (!tune) return;
  const act = (run) => async () => { place.hidden = true; await run(); };
  place.replaceChildren(element('span', {}, `${tune} Other settings may fit better.`),
    element('button', { type: 'button', class: 'primary', id: 'tune', onclick: act(() => studio.tune()) }, 'Look for them'),
    element('button', { type: 'button', onclick: act(() => {}) }, 'Not now'));
}

async function start() {
  await opened();
  // A pool is there to be asked about, a model of pictures opens on its desk, and one of many
  // features, whose plane would mislead, where something is to be done.
  const first = (state) => (state.pool ? 'questions' : state.pictures ? 'desk' : state.plane.slice?.misleads ? 'inbox' : 'plane');
  const wanted = (state) => location.hash.slice(1) || first(state);
  await studio.start([plane, inbox, questions, table, desk, history], wanted);
  document.title = `${studio.state.name} · knowmore studio`;
  listen();
  document.body.dataset.ready = 'yes';
  await advise();
}

start().catch((error) => {
  studio.find('loading')?.replaceChildren(element('p', {}, error.message));
  studio.say(error.message);
});

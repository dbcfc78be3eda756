// The page of a studio: its views, and what happens elsewhere.

import { desk } from './desk.js';
import { history } from './history.js';
import { inbox } from './inbox.js';
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

async function start() {
  // A pool is there to be asked about, and a model of pictures opens on its desk.
  const wanted = (state) => location.hash.slice(1) || (state.pool ? 'questions' : 'desk');
  await studio.start([plane, inbox, questions, table, desk, history], wanted);
  document.title = `${studio.state.name} · knowmore studio`;
  listen();
  document.body.dataset.ready = 'yes';
}

start().catch((error) => studio.say(error.message));

// The page of the studio in a widget. MODULES, BODY and STYLE are its files, given before this.

/** Modules from their texts, each of which imports only those before it. */
async function modules() {
  const [urls, made] = [{}, {}];
  for (const [name, text] of Object.entries(MODULES)) {
    const linked = text.replace(/'\.\/(\w+)\.js'/g, (_, other) => `'${urls[other]}'`);
    urls[name] = URL.createObjectURL(new Blob([linked], { type: 'text/javascript' }));
    made[name] = await import(urls[name]);
  }
  Object.values(urls).forEach(URL.revokeObjectURL);
  return made;
}

async function render({ model, el }) {
  const root = el.attachShadow({ mode: 'open' });
  const style = document.createElement('style');
  style.textContent = `${STYLE} #scenes, #tabs { display: none; } :host { display: block; }`;
  const body = document.createElement('div');
  body.innerHTML = BODY;
  root.append(style, body);
  // A notebook has keys of its own: not here.
  el.dataset.lmSuppressShortcuts = 'true';
  const { api, inbox, plane, shell } = await modules();
  const studio = new shell.Studio(root);
  const waiting = new Map();
  const said = (message, buffers) => {
    if (message.heard) studio.heard(message.heard);
    waiting.get(message.id)?.(new Response(buffers[0], { status: message.status }));
    waiting.delete(message.id);
  };
  model.on('msg:custom', said);
  api.through((path, options = {}) => new Promise((done) => {
    const id = `${performance.now()} ${Math.random()}`;
    waiting.set(id, done);
    model.send({ id, path, ...options });
  }));
  root.addEventListener('keydown', (event) => event.stopPropagation());
  await studio.start([{ plane: plane.plane, inbox: inbox.inbox }[model.get('_shown')]]);
  el.dataset.ready = 'yes';
  el.studio = studio;
  return () => model.off('msg:custom', said);
}

export default { render };

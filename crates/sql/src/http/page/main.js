// Where the objects come from, and what the user does.

const api = new Api(location.pathname.replace(/\/*$/, '/'), { key: 'token', server: 'the service', credentials: 'omit' });
const askForToken = tokenForm(api, () => {
  stopFollowing();
  start();
});

let loading = new AbortController();
let watching = { key: '', stop: new AbortController() };
let timer = 0;
let shown = '';

// A pressed element is not changed until it is released, because the click would be lost.
let released = Promise.resolve();
addEventListener('pointerdown', () => {
  released = new Promise(done => {
    const soon = () => setTimeout(done);
    for (const name of ['pointerup', 'pointercancel', 'blur']) addEventListener(name, soon, { once: true });
  });
}, true);

const pause = (time, signal) => new Promise(done => {
  const waiting = setTimeout(done, time);
  signal.addEventListener('abort', () => { clearTimeout(waiting); done(); }, { once: true });
});

async function load() {
  clearTimeout(timer);
  timer = 0;
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  if (!state.kind) return;
  const query = conditions();
  if (state.sort.length) query.set('sort', state.sort.join(','));
  if (state.summary) query.set('summary', state.summary);
  query.set('page', state.page);
  query.set('pagesize', state.size);
  $('table').setAttribute('aria-busy', 'true');
  try {
    const list = await api.get(`${state.kind.path}?${query}`, signal);
    await released;
    if (signal.aborted) return;
    const last = Math.max(1, Math.ceil(list.total / state.size));
    if (state.page > last) return go({ page: last });
    fail();
    draw(list);
    shown = state.kind.path;
    // The response of a list is complete once all objects are read.
    if (state.kind.state === 'filling') { state.kind.state = 'ready'; condition(); }
    hide(false);
    follow(list.revision);
  } catch (error) {
    if (signal.aborted) return;
    // The old rows belong to another query, unless the service is only temporarily unavailable.
    if (shown !== state.kind.path || isRefusal(error)) hide(true);
    stopFollowing();
    fail(error);
  } finally {
    if (!signal.aborted) $('table').setAttribute('aria-busy', 'false');
  }
}

const isRefusal = error => error.code >= 400 && error.code < 500;

function hide(isHidden) {
  for (const id of ['frame', 'pages']) $(id).hidden = isHidden;
  if (isHidden) $('counts').hidden = true;
}

function fail(error) {
  $('error').hidden = !error || error.code === 401;
  $('error').textContent = error ? sentence(String(error.message)) : '';
  if (!error) return;
  if (error.code === 401) askForToken($('error').textContent);
  const after = error.code === 0 ? 2 : error.after;
  if (after) timer = setTimeout(start, after * 1000);
}

async function show(object) {
  const at = place(object);
  $('title').textContent = `${state.kind.kind} ${decodeURIComponent(at)}`;
  $('json').textContent = JSON.stringify(object, null, 2);
  $('object').showModal();
  try {
    const newest = await api.get(`${state.kind.path}/${at}`);
    if ($('object').open) $('json').textContent = JSON.stringify(newest, null, 2);
  } catch (error) {
    if (error.code === 404) $('title').textContent += ' (deleted)';
  }
}

// Live updates: events only trigger a reload of the page's data, so that order, pages and counts are correct.
function follow(revision) {
  const key = `${state.kind.path}?${conditions()}`;
  if (!$('follow').checked) return stopFollowing();
  if (watching.key === key && !watching.stop.signal.aborted) return;
  watching.stop.abort();
  watching = { key, stop: new AbortController() };
  run(state.kind.path, conditions(), revision, watching.stop.signal);
}

function stopFollowing() {
  watching.stop.abort();
  live('', '');
}

function live(name, text) {
  $('live').className = name;
  setText($('live'), text);
}

async function run(path, query, revision, signal) {
  let last = revision;
  let wait = 1000;
  query.set('watch', 'true');
  while (!signal.aborted) {
    try {
      for await (const { id, data } of api.events(`${path}?${query}`, { headers: { 'last-event-id': last }, signal })) {
        live('on', 'Connected');
        wait = 1000;
        if (id) last = id;
        if (data) happened(JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 410) { watching.stop.abort(); load(); return; }
      if (isRefusal(error) && error.code !== 429) {
        stopFollowing();
        fail(error);
        return;
      }
      live('lost', 'Live updates are interrupted; trying again…');
      wait = Math.min(2 * wait, 30000);
    }
    await pause(wait, signal);
  }
}

function happened({ type, object }) {
  if (type === 'ERROR') throw new ApiError(object.code ?? 500, object.message ?? 'the watch has ended');
  fresh.set(place(object), type);
  if (!timer && !document.hidden) timer = setTimeout(load, 400);
}

function condition() {
  const texts = { filling: 'It is being filled.', failing: 'It cannot be written; what is shown may be old.' };
  $('state').textContent = texts[state.kind.state] ?? '';
}

function controls() {
  const { kind, filters } = state;
  $('kind').value = kind.path;
  condition();
  render($('filters'), filters.map((filter, at) =>
    chip(filter, '×', 'Remove this filter', () => go({ filters: filters.filter((_, other) => other !== at) }))));
  $('filters').hidden = !filters.length;
  for (const name of ['search', 'namespaces', 'summary', 'size']) $(name).value = state[name];
  $('searching').hidden = !kind.fields.some(field => field.isSearchable);
  render($('fields'), kind.fields.map(field => h('option', { key: field.name, value: quoted(field.name) })));
  document.title = `${kind.kind} – SQL cache`;
}

async function start() {
  try {
    const answer = await api.get('v1/kinds');
    kinds = answer.kinds;
    $('identify').hidden = answer.isOpen;
  } catch (error) {
    return fail(error);
  }
  if (!kinds.length) return fail(new Error('the cache has no kinds'));
  render($('kind'), kinds.map(kind =>
    h('option', { key: kind.path, value: kind.path }, kind.kind + (kind.group ? ` (${kind.group})` : ''))));
  moved();
}

function moved() {
  if (!kinds.length) return;
  read();
  controls();
  load();
}

$('form').addEventListener('submit', event => {
  event.preventDefault();
  const filter = $('filter').value.trim();
  $('filter').value = '';
  go({
    filters: filter && !state.filters.includes(filter) ? [...state.filters, filter] : state.filters,
    search: $('search').value.trim(), namespaces: $('namespaces').value.trim(), summary: $('summary').value.trim(),
  });
});
$('kind').addEventListener('change', () => go({
  kind: kinds.find(kind => kind.path === $('kind').value), filters: [], search: '', summary: '', sort: [],
}));
$('size').addEventListener('change', () => go({ size: Number($('size').value) }));
$('first').addEventListener('click', () => go({ page: 1 }));
$('previous').addEventListener('click', () => go({ page: state.page - 1 }));
$('next').addEventListener('click', () => go({ page: state.page + 1 }));
$('last').addEventListener('click', () => go({ page: Number($('last').dataset.page) }));
$('follow').addEventListener('change', load);
$('identify').addEventListener('click', () => askForToken(''));
$('close').addEventListener('click', () => $('object').close());
$('object').addEventListener('click', event => { if (event.target === $('object')) $('object').close(); });
$('copy').addEventListener('click', () => navigator.clipboard?.writeText($('json').textContent));
$('rows').addEventListener('keydown', event => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const all = [...$('rows').querySelectorAll('button')];
  const next = all[all.indexOf(document.activeElement) + step];
  if (next) { event.preventDefault(); next.focus(); }
});
document.addEventListener('keydown', event => {
  const isTyping = ['INPUT', 'SELECT'].includes(document.activeElement?.tagName);
  if (event.key === '/' && !isTyping && !document.querySelector('dialog[open]')) { event.preventDefault(); $('filter').focus(); }
});
document.addEventListener('visibilitychange', () => { if (!document.hidden && fresh.size) load(); });
addEventListener('hashchange', moved);
start();

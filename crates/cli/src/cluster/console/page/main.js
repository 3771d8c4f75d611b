// The page of the embedded cluster. Texts enter the document as text only.

const element = id => document.getElementById(id);
const KEY = 'lariat-cluster-token';
const POINTS = 60;

let token = sessionStorage.getItem(KEY) || '';
let paused = false;
let shown = null;
// How many requests there were at the moments of the last minute.
let totals = [];

// ---- The API ----

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function ask(method, path, body) {
  const headers = { accept: 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(`api/v1/${path}`, {
    method, headers, cache: 'no-store', body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  let message = response.statusText;
  try { message = (await response.json()).message || message; } catch { /* it is not JSON */ }
  throw new Refused(response.status, message);
}

async function act(method, path, body) {
  try {
    const answer = await (await ask(method, path, body)).json();
    fail('');
    element('done').textContent = answer.message;
    show(await (await ask('GET', 'state')).json());
    return true;
  } catch (error) {
    if (error.code === 401) identify(error.message);
    else fail(error.message);
    return false;
  }
}

function fail(message) {
  element('error').textContent = message;
  element('error').hidden = !message;
}

// Reads states as they come, and begins again when they end.
async function follow() {
  let isLost = false;
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const response = await ask('GET', 'state?watch=true');
      live('on', 'live');
      for await (const state of states(response.body)) {
        wait = 500;
        // What an action was refused for stays.
        if (isLost) fail('');
        isLost = false;
        if (!paused) show(state);
        else count(state);
      }
    } catch (error) {
      if (error.code === 401) {
        live('lost', 'no token');
        await identify(token ? error.message : '');
        continue;
      }
      isLost = true;
      fail(`The cluster does not answer: ${error.message}`);
    }
    live('lost', 'not connected');
    await new Promise(done => setTimeout(done, wait));
  }
}

async function* states(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    unread += value;
    const events = unread.split('\n\n');
    unread = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter(line => line.startsWith('data:')).map(line => line.slice(5)).join('\n');
      if (data) yield JSON.parse(data);
    }
  }
}

function live(name, text) {
  element('live').className = name;
  element('live').textContent = text;
}

// ---- Words ----

const whole = new Intl.NumberFormat('en');
const number = value => whole.format(value);

function size(bytes) {
  if (bytes == null) return 'unknown';
  for (const [unit, factor] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (bytes >= factor) return `${(bytes / factor).toFixed(bytes >= 100 * factor ? 0 : 1)} ${unit}`;
  }
  return `${bytes} B`;
}

function span(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${Math.floor(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${Math.floor(seconds % 3600 / 60)}m`;
}

function duration(seconds) {
  if (seconds == null) return '';
  if (seconds < 0.001) return '<1 ms';
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

// ---- The document ----

function make(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A change of the same text would take a selection along.
function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// Brings a list up to date; elements of the same key stay, and with them the focus.
function list(parent, items, key, create, update) {
  const known = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = known.get(name);
    known.delete(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    update(child, item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  for (const gone of known.values()) gone.remove();
}

// Makes a row with cells of these labels and classes; the first is its header. On a phone a row is a card with the labels.
const row = cells => () => {
  const made = make('tr');
  cells.forEach(([label, name], place) => {
    const cell = make(place ? 'td' : 'th', name);
    if (place) cell.dataset.label = label;
    else cell.scope = 'row';
    made.append(cell);
  });
  return made;
};

const texts = (cells, values) => values.forEach((value, place) => write(cells[place], value));

// ---- What is shown ----

function count(state) {
  totals.push({ at: performance.now(), total: state.journal.total });
  totals = totals.slice(-POINTS - 1);
}

function rates() {
  return totals.slice(1).map((now, place) => {
    const before = totals[place];
    const seconds = Math.max((now.at - before.at) / 1000, 0.2);
    return Math.max(now.total - before.total, 0) / seconds;
  });
}

function show(state) {
  const isFirst = !shown;
  shown = state;
  count(state);
  tiles(state);
  faults(state.faults);
  resources(state);
  watches(state);
  requests();
  suggestions(state);
  if (isFirst) document.documentElement.dataset.ready = 'true';
}

function tiles(state) {
  write(element('url'), state.url);
  write(element('objects'), number(state.objects));
  write(element('objects-more'), `${plural(state.resources.length, 'kind')}, ${size(state.bytes)}`);
  write(element('revision'), String(state.revision));
  write(element('revision-more'), `up ${span(state.uptimeSeconds)}`);
  write(element('watch-count'), number(state.watches.total));
  write(element('watch-more'), plural(state.connections, 'connection so far', 'connections so far'));
  const each = rates();
  const last = each.slice(-3);
  const rate = last.reduce((sum, one) => sum + one, 0) / (last.length || 1);
  write(element('rate'), rate < 10 ? rate.toFixed(1) : number(Math.round(rate)));
  write(element('rate-more'), `${number(state.journal.total)} in all`);
  const most = Math.max(...each, 1);
  const across = place => (120 - (each.length - 1 - place) * 120 / (POINTS - 1)).toFixed(1);
  const points = each.map((one, place) => `${across(place)} ${(19 - one / most * 18).toFixed(1)}`);
  element('spark').lastElementChild.setAttribute('d', points.length ? `M${points.join('L')}` : '');
  write(element('history'), plural(state.history.changes, 'change'));
  write(element('history-more'), `at most ${number(state.history.capacity)} a kind`);
  write(element('memory'), size(state.memoryBytes));
  write(element('memory-more'), 'of the process');
}

function faults(all) {
  const active = all.filter(fault => !fault.over).length;
  write(element('faults-count'), all.length ? `${active} switched on` : '');
  element('no-faults').hidden = all.length > 0;
  element('faults').hidden = all.length === 0;
  element('remove-all').disabled = !all.length;
  const create = fault => {
    const made = make('li');
    const remove = make('button', '', 'Remove');
    remove.type = 'button';
    remove.setAttribute('aria-label', `Remove the fault: ${fault.text}`);
    remove.addEventListener('click', async () => {
      if (await act('DELETE', `faults/${fault.id}`)) element('effect').focus();
    });
    made.append(make('span', 'level'), make('span', 'what'), make('span', 'hits'), remove);
    return made;
  };
  list(element('faults'), all, fault => fault.id, create, (item, fault) => {
    item.className = fault.over ? 'over' : 'warn';
    texts(item.children, [fault.over ? 'over' : 'on', fault.text, fault.hits === 1 ? 'met once' : `met ${number(fault.hits)} times`]);
  });
}

function resources(state) {
  write(element('kinds-count'), plural(state.resources.length, 'kind'));
  const of = new Map();
  for (const watch of state.watches.items) {
    const key = `${watch.group}/${watch.resource}`;
    of.set(key, (of.get(key) || 0) + 1);
  }
  const create = row([[], ['Group', 'quiet'], ['Objects', 'number'], ['Namespaces', ''], ['Watches', 'number'], ['Size', 'number'],
    ['Changes kept', 'number']]);
  list(element('resources'), state.resources, each => `${each.group}/${each.resource}`, create, (made, each) => {
    const cells = made.children;
    texts(cells, [each.kind, each.group || 'core', number(each.objects)]);
    namespaces(cells[3], each.namespaces);
    write(cells[4], number(of.get(`${each.group}/${each.resource}`) || 0));
    write(cells[5], size(each.bytes));
    write(cells[6], number(each.changes));
  });
}

function namespaces(cell, all) {
  const named = all.filter(each => each.name);
  const text = some => some.map(each => `${each.name} ${number(each.objects)}`).join(', ');
  if (named.length <= 4) {
    write(cell, text(named));
    cell.classList.toggle('none', !named.length);
    return;
  }
  let details = cell.querySelector('details');
  if (!details) {
    details = make('details');
    details.append(make('summary'), make('div'));
    cell.replaceChildren(details);
    cell.classList.remove('none');
  }
  write(details.children[0], `${number(named.length)} namespaces`);
  write(details.children[1], text(named));
}

function watches(state) {
  const { total, items } = state.watches;
  write(element('watches-count'), total > items.length ? `the oldest ${items.length} of ${number(total)}` : number(total));
  element('no-watches').hidden = total > 0;
  element('watches-table').hidden = total === 0;
  const create = row([[], ['Namespace', ''], ['Client', 'client'], ['User', ''], ['Open for', 'number'], ['Events sent', 'number']]);
  list(element('watches'), items, each => each.id, create, (made, each) => {
    texts(made.children, [each.kind, each.namespace || 'all', each.client || 'unknown', each.user,
      span(each.seconds), number(each.sent)]);
  });
}

function requests() {
  if (!shown) return;
  const wanted = element('filter').value.trim().toLowerCase();
  const onlyFailed = element('failed').checked;
  const failed = each => each.code === null || each.code >= 400;
  const matches = each => !wanted || `${each.verb} ${each.path} ${each.user} ${each.client}`.toLowerCase().includes(wanted);
  const all = shown.requests;
  const items = all.filter(each => (!onlyFailed || failed(each)) && matches(each));
  write(element('requests-count'), items.length === all.length ? number(all.length) : `${items.length} of ${all.length}`);
  element('no-requests').hidden = items.length > 0;
  element('requests-table').hidden = items.length === 0;
  const empty = row([[], ['Verb', ''], ['Status', ''], ['Time', 'number'], ['Ago', 'number'], ['User', ''], ['Client', 'client']]);
  const create = each => {
    const made = empty();
    // The faults of a request are known when it arrives, and do not change.
    made.children[0].append(make('span'), ...each.faults.map(text => make('span', 'by-fault', text)));
    made.children[2].append(make('span', 'badge'));
    return made;
  };
  list(element('requests'), items, each => each.id, create, (made, each) => {
    const cells = made.children;
    write(cells[0].firstElementChild, each.path);
    write(cells[1], each.verb);
    const status = cells[2].firstElementChild;
    write(status, each.code === null ? 'no answer' : String(each.code));
    status.className = failed(each) ? 'badge bad' : 'badge';
    const took = duration(each.seconds);
    write(cells[3], took);
    cells[3].classList.toggle('none', !took);
    write(cells[4], span(Math.max(each.secondsAgo, 0)));
    write(cells[5], each.user);
    cells[5].classList.toggle('none', !each.user);
    write(cells[6], each.client);
    cells[6].classList.toggle('none', !each.client);
  });
}

function suggestions(state) {
  const options = (parent, values) => list(element(parent), [...new Set(values)].filter(Boolean).sort(), each => each,
    each => { const made = make('option'); made.value = each; return made; }, () => {});
  options('kinds', state.resources.map(each => each.kind));
  // The name before the first blank is what a client calls itself.
  options('clients', [...state.watches.items, ...state.requests].map(each => each.client.split(' ')[0]));
}

// ---- What the user does ----

function rule() {
  const effect = element('effect').value;
  const text = id => element(id).value.trim() || undefined;
  const actions = {
    429: { refuse: { code: 429, retryAfterSeconds: 1 } },
    500: { refuse: { code: 500 } },
    503: { refuse: { code: 503 } },
    delay: { delay: { seconds: Number(element('seconds').value) } },
    expired: 'gone',
    conflict: 'conflict',
  };
  const times = text('times');
  return { action: actions[effect], kind: text('kind'), verb: text('verb'), client: text('client'), times: times && Number(times) };
}

function choose() {
  const effect = element('effect').value;
  for (const field of document.querySelectorAll('.for-rule')) field.hidden = effect === 'isolate';
  element('seconds-field').hidden = effect !== 'delay';
  element('seconds').disabled = effect !== 'delay';
  element('silent-field').hidden = effect !== 'isolate';
}

function identify(why) {
  const dialog = element('login');
  element('identify').hidden = false;
  element('refused').textContent = why;
  element('refused').hidden = !why;
  if (!dialog.open) dialog.showModal();
  return new Promise(done => dialog.addEventListener('close', done, { once: true }));
}

element('effect').addEventListener('change', choose);
element('fault-form').addEventListener('submit', event => {
  event.preventDefault();
  if (element('effect').value === 'isolate') {
    act('POST', 'faults/isolate', { client: element('client').value.trim(), silent: element('silent').checked });
  } else {
    act('POST', 'faults', rule());
  }
});
element('remove-all').addEventListener('click', () => act('DELETE', 'faults'));
for (const button of document.querySelectorAll('[data-once]')) {
  button.addEventListener('click', () => act('POST', button.dataset.once));
}
for (const id of ['filter', 'failed']) element(id).addEventListener('input', requests);
element('pause').addEventListener('click', () => {
  paused = !paused;
  element('pause').setAttribute('aria-pressed', String(paused));
  element('pause').textContent = paused ? 'Go on' : 'Pause';
});
element('identify').addEventListener('click', () => identify(''));
element('login-form').addEventListener('submit', () => {
  token = element('token').value.trim();
  element('token').value = '';
  sessionStorage.setItem(KEY, token);
});

choose();
follow();

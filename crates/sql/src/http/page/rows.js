// The table of the objects, its pages, and the counts above it.

const NAMES = { 'metadata.name': 'Name', 'metadata.namespace': 'Namespace', 'metadata.creationTimestamp': 'Created' };

/** How many values of a field are shown with their counts. */
const MOST = 20;

let columns = [];

/** The objects that have changed since the last drawing. */
const fresh = new Map();

function sentence(text) {
  // A version, as in v1 Pod, is left unchanged.
  const begun = /^[a-z]+\d/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

const isNumber = field => ['integer', 'real', 'quantity'].includes(field.type);
const written = value => typeof value === 'object' ? JSON.stringify(value) : String(value);

/** Returns the values of a field of an object. */
function values(object, steps) {
  let found = [object];
  for (const step of steps) {
    found = found.flatMap(value => {
      if (value === null || typeof value !== 'object') return [];
      if (step === null) return Array.isArray(value) ? value : [];
      if (typeof step === 'object') {
        const is = element => step.path.reduce((at, name) => at?.[name], element) === step.is;
        return Array.isArray(value) ? value.filter(is).slice(0, 1) : [];
      }
      return Object.hasOwn(value, step) ? [value[step]] : [];
    });
  }
  return found.filter(value => value !== null && value !== undefined);
}

function age(text) {
  const passed = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  if (Number.isNaN(passed)) return text;
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  const unit = units.find(([length]) => passed >= 2 * length);
  return unit ? `${Math.floor(passed / unit[0])} ${unit[1]} ago` : `${passed} s ago`;
}

function header(field) {
  const name = quoted(field.name);
  const at = state.sort.findIndex(sort => sort.replace(/^-/, '') === name);
  const isDown = state.sort[at]?.startsWith('-');
  const order = at < 0 ? '' : (isDown ? ' ↓' : ' ↑') + (state.sort.length > 1 ? at + 1 : '');
  const label = NAMES[field.name] ?? field.name;
  const sort = event => {
    const next = at < 0 ? [name] : isDown ? [] : [`-${name}`];
    if (!event.shiftKey) return go({ sort: next });
    const all = [...state.sort];
    all.splice(at < 0 ? all.length : at, at < 0 ? 0 : 1, ...next);
    go({ sort: all });
  };
  const title = `Sort by ${field.name}; with Shift after the others`;
  return h('th', {
    key: field.name, scope: 'col', class: isNumber(field) && 'number', 'aria-sort': at === 0 && (isDown ? 'descending' : 'ascending'),
  }, field.isMany ? h('span', {}, label)
    : h('button', { type: 'button', title, 'data-field': field.name, onclick: sort }, label + order));
}

function draw(list) {
  const hasNamespaces = list.objects.some(object => object.metadata?.namespace);
  columns = state.kind.fields.filter(field => field.steps && field.name !== 'metadata.uid'
    && (hasNamespaces || field.name !== 'metadata.namespace'));
  const rank = field => ({ 'metadata.name': 0, 'metadata.namespace': 1, 'metadata.creationTimestamp': 9 })[field.name] ?? 5;
  columns.sort((one, other) => rank(one) - rank(other));
  render($('head'), columns.map(header));
  const none = `no ${state.kind.kind} ${conditions().size ? 'meets the conditions' : 'is there'}`;
  render($('rows'), list.objects.length ? list.objects.map(row)
    : h('tr', { key: '' }, h('td', { class: 'empty', colspan: columns.length }, sentence(none))));
  fresh.clear();
  pages(list);
  counts(list);
}

function row(object) {
  const at = place(object);
  const onclick = () => { if (!String(getSelection())) show(object); };
  return h('tr', { key: at, class: fresh.has(at) && 'fresh', onclick }, columns.map(field => cell(object, field)));
}

function cell(object, field) {
  const text = values(object, field.steps).map(written).join(', ');
  const content = field.name === 'metadata.name' ? h('button', { type: 'button' }, text)
    : field.type === 'time' && text ? age(text) : text;
  return h('td', { class: isNumber(field) && 'number', title: text }, content);
}

function pages({ objects, total }) {
  const before = (state.page - 1) * state.size;
  const last = before + objects.length;
  $('range').textContent = objects.length ? `${count(before + 1)}–${count(last)} of ${count(total)}` : `${count(total)} objects`;
  $('first').disabled = $('previous').disabled = state.page <= 1;
  $('next').disabled = $('last').disabled = last >= total;
  $('last').dataset.page = Math.max(1, Math.ceil(total / state.size));
}

/** A text that can be pressed, and what is in bold after it. */
const chip = (text, strong, title, onclick) => h('button', { type: 'button', title, onclick }, text, h('b', {}, strong));

function counts({ summaries }) {
  const filter = (by, value) => {
    const added = `${by}=${literal(value)}`;
    if (!state.filters.includes(added)) go({ filters: [...state.filters, added] });
  };
  const chips = summaries.flatMap(({ by, counts: all }) => [
    h('span', { class: 'quiet' }, by),
    all.slice(0, MOST).map(({ value, objects }) =>
      chip(value === '' ? '(empty)' : value, count(objects), 'Filter by this value', () => filter(by, value))),
    all.length > MOST && h('span', { class: 'quiet' }, `and ${all.length - MOST} more`),
  ]);
  render($('counts'), chips);
  $('counts').hidden = !chips.length;
}

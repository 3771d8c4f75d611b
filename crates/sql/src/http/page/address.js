// What is shown, which is in the URL, so that it can be bookmarked, shared and restored by the back button.

const SIZES = [25, 50, 100, 500];

let kinds = [];
let state = {};

function read() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const text = name => hash.get(name) ?? '';
  state = {
    kind: kinds.find(kind => kind.path === text('kind')) ?? kinds[0],
    filters: hash.getAll('filter'), search: text('search'), namespaces: text('namespaces'), summary: text('summary'),
    sort: text('sort').split(',').filter(Boolean), page: Math.max(1, Number(text('page')) || 1),
    size: SIZES.includes(Number(text('size'))) ? Number(text('size')) : 50,
  };
}

/** Goes to a changed state, at its first page unless the change says which. */
function go(change) {
  const next = { ...state, page: 1, ...change };
  const hash = new URLSearchParams();
  hash.set('kind', next.kind.path);
  next.filters.forEach(filter => hash.append('filter', filter));
  for (const name of ['search', 'namespaces', 'summary']) if (next[name]) hash.set(name, next[name]);
  if (next.sort.length) hash.set('sort', next.sort.join(','));
  if (next.page > 1) hash.set('page', next.page);
  if (next.size !== 50) hash.set('size', next.size);
  if (location.hash.slice(1) === hash.toString()) load(); else location.hash = hash;
}

/** The conditions, as parameters of a request. */
function conditions() {
  const query = new URLSearchParams();
  state.filters.forEach(filter => query.append('filter', filter));
  for (const name of ['search', 'namespaces']) if (state[name]) query.set(name, state[name]);
  return query;
}

const inQuotes = text => `'${text.replace(/['\\]/g, '\\$&')}'`;

/** Quotes the name of a field for a filter. */
const quoted = text => /^[A-Za-z0-9_.\/:@[\]*][-A-Za-z0-9_.\/:@[\]*]*$/.test(text) ? text : inQuotes(text);

/** Quotes a value for a filter. */
const literal = text => /^[-A-Za-z0-9_.\/:@]+$/.test(text) ? text : inQuotes(text);

/** The place of an object below its kind. */
function place(object) {
  const { namespace, name } = object.metadata ?? {};
  return [namespace, name].filter(part => part !== undefined).map(encodeURIComponent).join('/');
}

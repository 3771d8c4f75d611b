// Elements from data. Texts become text nodes, never markup.
//
// `patch` changes an existing tree into the wanted one and touches only what differs, so that focus, scroll positions,
// selections, and what the user has typed or opened survive an update.

const SVG = 'http://www.w3.org/2000/svg';
const described = new WeakMap();

/** Describes an element. `key` identifies it among its siblings; `on…` are listeners; null and false leave out. */
export function h(tag, props, ...children) {
  const { key, ...rest } = props ?? {};
  return { tag, key, props: rest, children };
}

/** Makes the children of an element the wanted ones. */
export function patch(parent, wanted) {
  const nodes = flatten(wanted);
  const keyed = claim(parent, nodes);
  let next = parent.firstChild;
  for (const node of nodes) {
    const known = find(node, next, keyed);
    const element = known ?? create(node, parent);
    if (element === next) next = next.nextSibling;
    else parent.insertBefore(element, next);
    update(element, node);
  }
  while (next) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
}

/** Patches, and gives back the focus if its element was moved. */
export function render(parent, wanted) {
  const focused = document.activeElement;
  patch(parent, wanted);
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function flatten(wanted) {
  return [wanted].flat(Infinity)
    .filter(node => node !== null && node !== undefined && node !== false && node !== '')
    .map(node => (typeof node === 'object' ? node : String(node)));
}

/** Removes keyed children that are no longer wanted, so that those that stay need not move; returns the others. */
function claim(parent, nodes) {
  const wanted = new Set(nodes.map(node => node.key).filter(key => key !== undefined));
  const keyed = new Map();
  for (const child of [...parent.childNodes]) {
    const key = described.get(child)?.key;
    if (key === undefined) continue;
    if (wanted.has(key)) keyed.set(key, child);
    else child.remove();
  }
  return keyed;
}

function find(node, next, keyed) {
  if (typeof node === 'string') return next?.nodeType === Node.TEXT_NODE ? next : null;
  if (node.key === undefined) {
    const before = described.get(next);
    return before && before.tag === node.tag && before.key === undefined ? next : null;
  }
  const element = keyed.get(node.key);
  keyed.delete(node.key);
  return element && described.get(element).tag === node.tag ? element : null;
}

function create(node, parent) {
  if (typeof node === 'string') return document.createTextNode('');
  const space = node.tag === 'svg' ? SVG : parent.namespaceURI;
  const element = document.createElementNS(space, node.tag);
  described.set(element, { tag: node.tag, key: node.key, props: {}, children: [] });
  return element;
}

function update(element, node) {
  if (typeof node === 'string') {
    if (element.data !== node) element.data = node;
    return;
  }
  const before = described.get(element);
  for (const name of Object.keys(before.props)) if (!(name in node.props)) set(element, name, null);
  for (const [name, value] of Object.entries(node.props)) {
    if (before.props[name] !== value) set(element, name, value);
  }
  described.set(element, node);
  patch(element, node.children);
}

function set(element, name, value) {
  if (name.startsWith('on')) element[name] = value;
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}

/** The element of an id. */
export const $ = id => document.getElementById(id);

/** Sets a text; an equal one is left alone, because a change takes a selection along, and is read out. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The search for a key, which opens its page.

import { controllerAddress, keyAddress } from './address.js';
import { h, render } from './dom.js';
import { apiVersion } from './format.js';

const [form, select, field] = ['search', 'kind', 'key'].map(id => document.getElementById(id));

let kinds = [];

/** Offers the kinds of controllers. */
export function drawSearch({ overview, route }) {
  const isFirst = !kinds.length;
  kinds = overview.controllers;
  const isUnique = new Set(kinds.map(kind => kind.kind)).size === kinds.length;
  const name = kind => (isUnique ? kind.kind : [kind.kind, apiVersion(kind), kind.context].filter(Boolean).join(' '));
  render(select, kinds.map(kind => h('option', { key: controllerAddress(kind), value: controllerAddress(kind) }, name(kind))));
  if (isFirst) selectKind(route);
}

/** Chooses the kind that is shown. */
export function selectKind(route) {
  if (route.kind) select.value = controllerAddress(route.kind);
}

form.onsubmit = event => {
  event.preventDefault();
  const key = field.value.trim();
  const kind = kinds.find(it => controllerAddress(it) === select.value);
  const isKey = /^[^/~\s]*\/?[^/~\s]+$/.test(key);
  field.setCustomValidity(isKey ? '' : 'Write namespace/name, or the name of an object without a namespace.');
  if (!field.reportValidity() || !kind) return;
  field.value = '';
  location.hash = keyAddress(kind, key.replace(/^\//, ''));
};

field.oninput = () => field.setCustomValidity('');

// A slash goes to the search, as in many pages.
document.addEventListener('keydown', event => {
  const isTyping = event.target.closest?.('input, select, textarea, dialog');
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
});

// The log filter, which can be changed while the program runs.

import { perform } from './actions.js';
import { h } from './dom.js';
import { code, section } from './parts.js';

/** The log filter, with a field to change it for those who may. */
export function logFilter(overview) {
  const filter = overview.program.logFilter;
  if (filter === null || filter === undefined) return null;
  return section('Log filter', {},
    h('p', {}, code(filter)),
    overview.allowed.actions && h('form', { class: 'row', onsubmit: change },
      h('label', { for: 'filter' }, 'New filter'),
      h('input', { id: 'filter', name: 'filter', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'info,lariat_cache=debug' }),
      h('button', { type: 'submit' }, 'Set')));
}

function change(event) {
  event.preventDefault();
  const field = event.target.elements.filter;
  perform({ action: 'log-filter', filter: field.value.trim() });
  field.value = '';
}

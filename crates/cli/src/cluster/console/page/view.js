// What the state of the cluster looks like.

import { sparkline } from './chart.js';
import { $, h, render, setText } from './dom.js';
import { bytes, count, counted, rate, seconds } from './numbers.js';
import { tableRows } from './table.js';

const POINTS = 60;

// How many requests there were at the moments of the last minute.
let totals = [];

/** Remembers how many requests there were, for the rate. */
export function remember(state) {
  totals.push({ at: performance.now(), total: state.journal.total });
  totals = totals.slice(-POINTS - 1);
}

/** Shows a state; `remove` is called with a fault that is to be removed. */
export function show(state, remove) {
  overview(state);
  faults(state.faults, remove);
  resources(state);
  watches(state);
  requests(state);
  suggestions(state);
}

function rates() {
  return totals.slice(1).map((now, place) => {
    const before = totals[place];
    const passed = Math.max((now.at - before.at) / 1000, 0.2);
    return Math.max(now.total - before.total, 0) / passed;
  });
}

const size = number => (number == null ? 'unknown' : bytes(number));

/** A duration that is not known to a part of a second. */
const span = duration => seconds(Math.floor(Math.max(duration, 0)));

function overview(state) {
  const each = rates();
  const last = each.slice(-3);
  const texts = {
    url: state.url,
    objects: count(state.objects),
    'objects-more': `${counted(state.resources.length, 'kind')}, ${bytes(state.bytes)}`,
    revision: String(state.revision),
    'revision-more': `up ${span(state.uptimeSeconds)}`,
    'watch-count': count(state.watches.total),
    'watch-more': counted(state.connections, 'connection so far', 'connections so far'),
    rate: rate(last.reduce((sum, one) => sum + one, 0) / (last.length || 1)),
    'rate-more': `${count(state.journal.total)} in all`,
    history: counted(state.history.changes, 'change'),
    'history-more': `at most ${count(state.history.capacity)} a kind`,
    memory: size(state.memoryBytes),
    'memory-more': 'of the process',
  };
  for (const [id, text] of Object.entries(texts)) setText($(id), text);
  render($('spark'), sparkline(each, 'Requests a second, in the last minute', { slots: POINTS }));
}

function faults(all, remove) {
  const active = all.filter(fault => !fault.over).length;
  setText($('faults-count'), all.length ? `${active} switched on` : '');
  $('no-faults').hidden = all.length > 0;
  $('faults').hidden = all.length === 0;
  $('remove-all').disabled = !all.length;
  render($('faults'), all.map(fault =>
    h('li', { key: fault.id, class: fault.over ? 'over' : 'warn' },
      h('span', { class: 'level' }, fault.over ? 'over' : 'on'),
      h('span', { class: 'what' }, fault.text),
      h('span', { class: 'hits' }, fault.hits === 1 ? 'met once' : `met ${count(fault.hits)} times`),
      h('button', { type: 'button', 'aria-label': `Remove the fault: ${fault.text}`, onclick: () => remove(fault) }, 'Remove'))));
}

const RESOURCES = [
  { name: 'Kind' }, { name: 'Group', tone: 'quiet' }, { name: 'Objects', number: true }, { name: 'Namespaces' },
  { name: 'Watches', number: true }, { name: 'Size', number: true }, { name: 'Changes kept', number: true },
];

function resources(state) {
  setText($('kinds-count'), counted(state.resources.length, 'kind'));
  const name = each => `${each.group}/${each.resource}`;
  const watched = new Map();
  for (const watch of state.watches.items) watched.set(name(watch), (watched.get(name(watch)) || 0) + 1);
  render($('resources'), tableRows(RESOURCES, state.resources.map(each => ({
    key: name(each),
    cells: [
      each.kind, each.group || 'core', count(each.objects), namespaces(each.namespaces), count(watched.get(name(each)) || 0),
      bytes(each.bytes), count(each.changes),
    ],
  }))));
}

function namespaces(all) {
  const named = all.filter(each => each.name);
  const text = named.map(each => `${each.name} ${count(each.objects)}`).join(', ');
  if (named.length <= 4) return text;
  return h('details', {}, h('summary', {}, counted(named.length, 'namespace')), h('div', {}, text));
}

const WATCHES = [
  { name: 'Kind' }, { name: 'Namespace' }, { name: 'Client', tone: 'client' }, { name: 'User' },
  { name: 'Open for', number: true }, { name: 'Events sent', number: true },
];

function watches({ watches: { total, items } }) {
  setText($('watches-count'), total > items.length ? `the oldest ${items.length} of ${count(total)}` : count(total));
  $('no-watches').hidden = total > 0;
  $('watches-table').hidden = total === 0;
  render($('watches'), tableRows(WATCHES, items.map(each => ({
    key: each.id,
    cells: [
      each.kind, each.namespace || 'all', each.client || 'unknown', each.user, span(each.seconds), count(each.sent),
    ],
  }))));
}

const REQUESTS = [
  { name: 'Path' }, { name: 'Verb' }, { name: 'Status' }, { name: 'Time', number: true }, { name: 'Ago', number: true },
  { name: 'User' }, { name: 'Client', tone: 'client' },
];

const hasFailed = each => each.code === null || each.code >= 400;

/** Shows the requests that the filter and the choice of failed ones leave. */
export function requests({ requests: all }) {
  const wanted = $('filter').value.trim().toLowerCase();
  const matches = each => `${each.verb} ${each.path} ${each.user} ${each.client}`.toLowerCase().includes(wanted);
  const items = all.filter(each => (!$('failed').checked || hasFailed(each)) && matches(each));
  setText($('requests-count'), items.length === all.length ? count(all.length) : `${items.length} of ${all.length}`);
  $('no-requests').hidden = items.length > 0;
  $('requests-table').hidden = items.length === 0;
  render($('requests'), tableRows(REQUESTS, items.map(each => ({
    key: each.id,
    cells: [
      [h('span', {}, each.path), each.faults.map(text => h('span', { class: 'by-fault' }, text))],
      each.verb,
      h('span', { class: hasFailed(each) ? 'badge bad' : 'badge' }, each.code === null ? 'no answer' : String(each.code)),
      each.seconds == null ? '' : seconds(each.seconds),
      span(each.secondsAgo),
      each.user,
      each.client,
    ],
  }))));
}

function suggestions(state) {
  const options = (id, values) => render($(id), [...new Set(values)].filter(Boolean).sort()
    .map(value => h('option', { key: value, value })));
  options('kinds', state.resources.map(each => each.kind));
  // The name before the first blank is what a client calls itself.
  options('clients', [...state.watches.items, ...state.requests].map(each => each.client.split(' ')[0]));
}

// The caches: what is kept of each kind, and whether it is current.

import { controllerAddress } from './address.js';
import { h } from './dom.js';
import { NONE } from './format.js';
import { bytes, count, counted, seconds } from './numbers.js';
import { badge, kindLink, notable, section, table } from './parts.js';

const COLUMNS = [
  { name: 'Kind' },
  { name: 'State', wide: true },
  { name: 'Objects', number: true },
  { name: 'Memory', number: true },
  { name: 'Kept' },
  { name: 'Last heard', title: 'How long ago the API server last sent something', number: true },
  { name: 'Decodes', title: 'Values decoded from what is kept', number: true },
  { name: 'Loads', title: 'How often all objects were read', number: true },
  { name: 'Watches', title: 'Watches opened', number: true },
  { name: 'Reconnects', title: 'Requests that followed another one, by the reason why that one ended' },
  { name: 'Unreadable', title: 'Objects and events that could not be read', number: true },
];

export function cachesView({ overview }) {
  const { caches, controllers } = overview;
  const total = name => caches.reduce((sum, cache) => sum + cache[name], 0);
  const controlled = new Set(controllers.map(controllerAddress));
  const note = caches.length ? `${counted(total('objects'), 'object')}, ${bytes(total('bytes'))}` : null;
  return [
    h('h1', { class: 'sr', tabindex: '-1' }, 'Caches'),
    section('Caches', { note }, table('Caches', COLUMNS, caches.map(cache => row(cache, controlled)), { empty: 'No kind is cached.' })),
  ];
}

function row(cache, controlled) {
  const address = controllerAddress(cache);
  return {
    key: address,
    cells: [
      kindLink(cache, { plain: !controlled.has(address) }),
      state(cache),
      count(cache.objects),
      bytes(cache.bytes),
      cache.policy,
      cache.lastReceived === null ? NONE : `${seconds(cache.lastReceived)} ago`,
      count(cache.decodes),
      count(cache.loads),
      count(cache.watches),
      cache.reconnects.map(([reason, times]) => `${count(times)} ${reason}`).join(', '),
      notable(cache.unreadable, count(cache.unreadable), 'bad'),
    ],
  };
}

function state(cache) {
  const tone = cache.stale || cache.lastError ? 'bad' : cache.synced ? '' : 'warn';
  return [
    badge(cache.stale ? `${cache.phase}, stale` : cache.phase, tone),
    progress(cache),
    cache.lastError && h('p', { class: 'error' }, cache.lastError),
    cache.retryIn !== null && h('p', { class: 'quiet small' }, `Next attempt in ${seconds(cache.retryIn)}`),
  ];
}

/** How far a list has come, while one is read. */
function progress({ loaded, total, kind }) {
  if (loaded === null) return null;
  if (!total) return h('p', { class: 'small' }, `${counted(loaded, 'object')} read`);
  return h('p', { class: 'small' },
    h('progress', { max: total, value: Math.min(loaded, total), 'aria-label': `Objects of ${kind} read` }),
    ` ${count(loaded)} of ${count(total)}`);
}

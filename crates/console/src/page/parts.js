// What several views are made of.

import { controllerAddress, keyAddress } from './address.js';
import { h } from './dom.js';
import { apiVersion, keyName, list, NONE, sentence, time } from './format.js';
import { counted, seconds } from './numbers.js';
import { tableHead, tableRows } from './table.js';

/** A heading and what is below it. */
export const section = (title, { note, key = title } = {}, ...children) =>
  h('section', { key },
    h('h2', {}, title, note && h('span', { class: 'note' }, note)),
    children);

/** A table; the first rows of a long one. */
export function table(label, columns, rows, { empty, limit = 200 } = {}) {
  if (!rows.length) return empty ? h('p', { class: 'empty' }, empty) : null;
  const left = rows.length - limit;
  return [
    h('table', { role: 'table', 'aria-label': label, class: columns.some(column => column.wide) ? 'full' : null },
      tableHead(columns),
      h('tbody', { role: 'rowgroup' }, tableRows(columns, rows.slice(0, limit)))),
    left > 0 && h('p', { class: 'empty' }, `${counted(left, 'more row')}, not shown.`),
  ];
}

/** Names and values in one line, or under each other where it is narrow. */
export const facts = entries =>
  h('dl', { class: 'facts' }, entries.filter(Boolean).map(([name, value, tone]) =>
    h('div', { key: name }, h('dt', {}, name), h('dd', { class: tone }, value))));

/** The name of a kind, as a link to its controller, with what tells it from others of the name. */
export function kindLink(kind, { plain = false } = {}) {
  const name = plain ? h('b', {}, kind.kind) : h('a', { href: controllerAddress(kind) }, kind.kind);
  return [name, ' ', h('span', { class: 'quiet small' }, [apiVersion(kind), kind.context].filter(Boolean).join(' · '))];
}

/** What stands for what is being read, unless it could not be read: that is said above. */
export const loading = error => (error ? null : h('p', { class: 'empty' }, 'Loading…'));

/** A key, as a link to its page. */
export const keyLink = (kind, key) => h('a', { class: 'key', href: keyAddress(kind, key) }, keyName(key));

/** Another object: its kind and its key. */
export const objectLink = (kind, key) =>
  h('a', { class: 'key', href: keyAddress(kind, key) }, `${kind.kind} ${keyName(key)}`);

/** The name of a handler, a field or a header: what is written in code. */
export const code = text => h('code', {}, text);

/** A state in one word; `tone` is `bad`, `warn`, `good` or nothing. */
export const badge = (text, tone) => h('span', { class: `badge ${tone ?? ''}`.trim() }, text);

/** A number that is quiet while it is zero, and `tone` otherwise. */
export const notable = (number, text, tone) => h('span', { class: number ? tone : 'quiet' }, text);

/** A quantile, if anything was measured. */
export const quantile = (quantiles, name) => (quantiles.count ? seconds(quantiles[name]) : NONE);

/** A button that is there only for those who may use it. */
export const button = (text, onclick, props = {}) => h('button', { type: 'button', onclick, ...props }, text);

const WAITS = { resume: 'until it is resumed', caches: 'for caches', limit: 'for its limit' };

/** The lanes of a key in the queue. */
export const lanes = queued => queued.lanes.map((lane, at) => [
  at > 0 && ', ',
  lane.handler === '*' ? 'all handlers' : code(lane.handler),
  lane.waitsFor ? ` waits ${WAITS[lane.waitsFor] ?? `for ${lane.waitsFor}`}` : lane.dueIn ? ` in ${seconds(lane.dueIn)}` : ' due',
  lane.failures ? ` after ${counted(lane.failures, 'failure')}` : '',
]);

/** A time of the clock. */
export const moment = (at, overview) => h('time', { datetime: at, title: at }, time(at, overview.program.now));

/** A cause as a sentence, with the paths of changed fields and the object it is about. */
export function causeText(cause, { link = true } = {}) {
  const fields = cause.fields.map((field, at) => [at > 0 && ', ', code(field)]);
  return [
    sentence(cause.text),
    fields.length ? ['; changed: ', fields] : '',
    link && cause.link && [' — ', objectLink(cause.link, cause.link.key)],
  ];
}

/** What is known of a hot loop, after its pattern. */
export const loopText = loop => [
  loop.pattern,
  loop.handlers.length ? [' Written by ', code(list(loop.handlers)), '.'] : '',
  loop.triggeredBy ? [' Enqueued by ', code(loop.triggeredBy), '.'] : '',
  loop.fields.length ? [' Fields: ', code(loop.fields.join(', ')), '.'] : '',
];

// A controller: its handlers, its queue and its keys.

import { confirmed, perform } from './actions.js';
import { kindOnly } from './address.js';
import { sparkline } from './chart.js';
import { h } from './dom.js';
import { apiVersion, NONE } from './format.js';
import { count, counted, rate, seconds } from './numbers.js';
import { errorShare, stateOf, totalRate, troubleText } from './overview.js';
import { badge, button, code, facts, keyLink, lanes, loading, loopText, moment, notable, quantile, section, table } from './parts.js';

const BOUND = 'an upper bound within a factor of two';
const HANDLERS = [
  { name: 'Handler' },
  { name: 'State' },
  { name: 'Calls/s', title: 'Calls per second, over the last minute', number: true },
  { name: 'p50', title: `The median duration of calls; ${BOUND}`, number: true },
  { name: 'p99', title: `99 of 100 calls are shorter; ${BOUND}`, number: true },
  { name: 'Lag p99', title: `From the change to the call for it; ${BOUND}`, number: true },
  { name: 'Waiting', title: 'Keys that wait for the handler, without a worker', number: true },
  { name: 'Calls', number: true },
  { name: 'Failures', title: 'Panics and timeouts included', number: true },
  { name: 'Retries', number: true },
  { name: 'Exhausted', title: 'Failures after which the retries were exhausted', number: true },
];
const QUEUED = [{ name: 'Key' }, { name: 'State' }, { name: 'Priority' }, { name: 'Due for', number: true }, { name: 'Lanes', wide: true }];

export function controllerView({ overview, detail, detailError, route }) {
  if (!detail) return [title(route.kind), loading(detailError)];
  const may = overview.allowed.actions;
  const { queue } = detail;
  return [
    title(detail, stateOf(detail), may && relistButton(detail)),
    failingKeys(detail),
    givenUpKeys(detail),
    hotLoops(detail),
    section('Handlers', {}, table('Handlers', may ? [...HANDLERS, { name: 'Action' }] : HANDLERS,
      detail.handlers.map(handler => handlerRow(detail, handler, may)), { empty: 'It has no handler.' })),
    section('Queue', {},
      h('div', { class: 'charts' },
        chart('Due', detail.samples.map(sample => sample.ready), count(queue.ready)),
        chart('Calls/s', detail.samples.map(sample => sample.calls / 2), rate(totalRate(detail, 'rate'))),
        chart('Errors/s', detail.samples.map(sample => sample.failures / 2), rate(totalRate(detail, 'failureRate')), 'bad')),
      queueFacts(detail)),
    h('div', { class: 'pair' },
      section('In flight', {}, table('Keys in flight', [{ name: 'Key' }, { name: 'Handler' }, { name: 'Running for', number: true }],
        detail.inProgress.map(call => ({
          key: call.key,
          cells: [keyLink(detail, call.key), call.handler ? code(call.handler) : '', seconds(call.lasts)],
        })), { empty: 'No key is being processed.' })),
      section('Slowest runs', { note: 'of those that are kept' }, table('Slowest runs',
        [{ name: 'Key' }, { name: 'Slowest handler' }, { name: 'Took', number: true }, { name: 'At', number: true }],
        detail.slowest.map((slow, at) => ({
          key: `${slow.at} ${slow.key} ${at}`,
          cells: [keyLink(detail, slow.key), code(slow.handler), seconds(slow.took), moment(slow.at, overview)],
        })), { empty: 'No run is kept.' }))),
    section('Waiting', { note: queuedNote(detail) }, table('Keys waiting', QUEUED, detail.queued.map(queued => ({
      key: queued.key,
      cells: [keyLink(detail, queued.key), queued.state, queued.priority, queued.dueFor ? seconds(queued.dueFor) : '', lanes(queued)],
    })), { empty: 'No key waits.' })),
  ];
}

const title = (kind, ...children) =>
  h('div', { class: 'title' },
    h('h1', { tabindex: '-1' }, kind.kind, ' ', h('span', { class: 'quiet' }, apiVersion(kind))), children);

const chart = (name, values, now, tone = '') =>
  h('figure', {},
    h('figcaption', {}, name, h('b', {}, now)),
    sparkline(values, `${name} over the last minutes: now ${now}`, { tone, slots: 150 }));

const relistButton = controller => button('Relist…', () => confirmed(
  `Read all objects of ${controller.kind} again?`,
  `The API server is asked for ${counted(controller.objects, 'object')}. Handlers are called for what differs from the cache.`,
  'Relist', { ...kindOnly(controller), action: 'relist' },
));

function handlerRow(controller, handler, may) {
  const breakdown = [
    handler.panics && counted(handler.panics, 'panic'),
    handler.timeouts && counted(handler.timeouts, 'timeout'),
  ].filter(Boolean);
  const failures = [count(handler.failures), breakdown.length ? ` (${breakdown.join(', ')})` : ''];
  const cells = [
    code(handler.name),
    handlerState(handler),
    rate(handler.rate),
    quantile(handler.time, 'p50'),
    quantile(handler.time, 'p99'),
    quantile(handler.lag, 'p99'),
    notable(handler.waiting, count(handler.waiting)),
    count(handler.calls),
    notable(handler.failures, failures, ''),
    notable(handler.retries, count(handler.retries), ''),
    notable(handler.exhausted, count(handler.exhausted), 'bad'),
  ];
  if (may) cells.push(pauseButton(controller, handler));
  return { key: handler.name, cells };
}

function handlerState(handler) {
  if (handler.failing || handler.givenUp) return badge(troubleText(handler.failing, handler.givenUp), 'bad');
  return handler.blocked ? badge(handler.blocked, 'warn') : badge('active');
}

function pauseButton(controller, handler) {
  const action = { ...kindOnly(controller), handler: handler.name };
  const label = verb => ({ 'aria-label': `${verb} ${handler.name}`, key: verb });
  if (handler.blocked === 'paused') return button('Resume', () => perform({ ...action, action: 'resume' }), label('Resume'));
  return button('Pause…', () => confirmed(
    `Pause ${handler.name} of ${controller.kind}?`,
    'It is not called until it is resumed; keys that are due for it wait. Other handlers go on.',
    'Pause', { ...action, action: 'pause' },
  ), label('Pause'));
}

function queueFacts(detail) {
  const { queue, workers } = detail;
  const [high, normal, low] = queue.byPriority;
  const spread = quantiles => (quantiles.count
    ? ['p50', 'p99', 'max'].map(name => seconds(quantiles[name])).join(' / ')
    : 'none measured');
  return facts([
    ['Workers', workers === null ? 'not running' : `${queue.processing} of ${workers} busy`],
    ['Due', `${count(queue.ready)}${queue.ready ? `: ${count(high)} high, ${count(normal)} normal, ${count(low)} low` : ''}`],
    ['Delayed', count(queue.delayed)],
    queue.processing > 0 && ['Longest in flight', seconds(queue.longest)],
    ['Wait p50 / p99 / max', spread(queue.wait)],
    ['Work p50 / p99 / max', spread(queue.work)],
    ['Errors', errorShare(detail)],
    ['Added', count(queue.adds)],
    ['Retries', count(queue.retries)],
    ['Objects', count(detail.objects)],
  ]);
}

function queuedNote({ queued, queuedTotal }) {
  if (!queuedTotal) return null;
  return queued.length < queuedTotal ? `${count(queued.length)} of ${counted(queuedTotal, 'key')}` : counted(queuedTotal, 'key');
}

function failingKeys(detail) {
  if (!detail.failingKeys.length) return null;
  const columns = [{ name: 'Key' }, { name: 'Handler' }, { name: 'Error', wide: true }, { name: 'Failures', number: true }, { name: 'Next retry', title: 'None if the key is due', number: true }];
  return section('Failing keys', {}, table('Failing keys', columns, detail.failingKeys.map(failing => ({
    key: `${failing.key} ${failing.handler}`,
    cells: [
      keyLink(detail, failing.key),
      code(failing.handler),
      h('span', { class: 'error' }, failing.error ?? 'its last run is not kept'),
      failing.failures ? count(failing.failures) : '',
      failing.retryIn === null ? NONE : `in ${seconds(failing.retryIn)}`,
    ],
  }))));
}

function givenUpKeys(detail) {
  if (!detail.givenUpKeys.length) return null;
  const columns = [{ name: 'Key' }, { name: 'Handler' }, { name: 'Error', wide: true }, { name: 'Last call', number: true }];
  const note = 'not called again until the object changes or the key is enqueued';
  return section('Given up', { note }, table('Keys that were given up', columns, detail.givenUpKeys.map(given => ({
    key: `${given.key} ${given.handler}`,
    cells: [
      keyLink(detail, given.key),
      code(given.handler),
      h('span', { class: 'error' }, given.error ?? 'its last run is not kept'),
      `${seconds(given.ago)} ago`,
    ],
  }))));
}

function hotLoops(detail) {
  if (!detail.loops.length) return null;
  const columns = [{ name: 'Key' }, { name: 'What happens', wide: true }, { name: 'Rounds', number: true }];
  return section('Hot loops', {}, table('Hot loops', columns, detail.loops.map(loop => ({
    key: loop.key,
    cells: [keyLink(detail, loop.key), loopText(loop), count(loop.rounds)],
  }))));
}

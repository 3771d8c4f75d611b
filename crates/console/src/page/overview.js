// The overview: what needs attention, and everything that runs.

import { controllerAddress } from './address.js';
import { attention, findings } from './attention.js';
import { sparkline } from './chart.js';
import { h } from './dom.js';
import { logFilter } from './filter.js';
import { NONE } from './format.js';
import { bytes, count, counted, percent, rate, seconds } from './numbers.js';
import { badge, facts, kindLink, notable, quantile, section, table } from './parts.js';

const COLUMNS = [
  { name: 'Controller' },
  { name: 'State' },
  { name: 'Due', title: 'Keys that wait for a worker, over the last two minutes', number: true },
  { name: 'Delayed', title: 'Keys that wait for a delay to end', number: true },
  { name: 'Wait p99', title: 'How long keys waited for a worker; an upper bound within a factor of two', number: true },
  { name: 'Workers', title: 'Busy workers, of all', number: true },
  { name: 'Calls/s', title: 'Calls of handlers per second, over the last minute', number: true },
  { name: 'Errors', title: 'Calls that failed, of those of the last minute', number: true },
  { name: 'Objects', number: true },
];

export function overviewView({ overview, details }) {
  return [
    h('h1', { class: 'sr', tabindex: '-1' }, 'Overview'),
    section('Needs attention', {}, attention(findings(overview, details))),
    section('Controllers', {},
      table('Controllers', COLUMNS, overview.controllers.map(controllerRow), { empty: 'No controller is in use.' })),
    section('Program', {}, programFacts(overview)),
    logFilter(overview),
  ];
}

function controllerRow(controller) {
  const { queue, workers, objects } = controller;
  return {
    key: controllerAddress(controller),
    cells: [
      kindLink(controller),
      stateOf(controller),
      h('span', { class: 'depth' }, depthLine(controller), h('span', {}, count(queue.ready))),
      notable(queue.delayed, count(queue.delayed)),
      quantile(queue.wait, 'p99'),
      workers === null ? NONE : `${queue.processing} / ${workers}`,
      rate(totalRate(controller, 'rate')),
      notable(totalRate(controller, 'failureRate'), errorShare(controller), 'bad'),
      count(objects),
    ],
  };
}

export function depthLine(controller) {
  const values = controller.samples.map(sample => sample.ready);
  return sparkline(values, `Due keys over the last two minutes: now ${controller.queue.ready}, at most ${Math.max(0, ...values)}`);
}

export const totalRate = (controller, name) => controller.handlers.reduce((sum, handler) => sum + handler[name], 0);

export const errorShare = controller => percent(totalRate(controller, 'failureRate'), totalRate(controller, 'rate'));

/** The state of a controller in a word; the phase of its cache while it is not synced. */
export function stateOf(controller) {
  const failing = controller.handlers.reduce((sum, handler) => sum + handler.failing, 0);
  const givenUp = controller.handlers.reduce((sum, handler) => sum + handler.givenUp, 0);
  if (failing || givenUp) return badge(troubleText(failing, givenUp), 'bad');
  if (controller.hotLoops) return badge(counted(controller.hotLoops, 'hot loop'), 'warn');
  if (controller.workers === null) return badge('not running');
  return badge(controller.phase, controller.phase === 'synced' ? '' : 'warn');
}

/** Failing keys and those that were given up, in a few words. */
export const troubleText = (failing, givenUp) =>
  [failing && `${counted(failing, 'key')} failing`, givenUp && `${failing ? count(givenUp) : counted(givenUp, 'key')} given up`]
    .filter(Boolean).join(', ');

function programFacts(overview) {
  const total = name => overview.caches.reduce((sum, cache) => sum + cache[name], 0);
  return facts([
    ['Cached', h('a', { href: '#/caches' }, `${counted(total('objects'), 'object')}, ${bytes(total('bytes'))}`)],
    overview.leases.length && ['Leases', h('a', { href: '#/leases' }, overview.leases.map(lease => `${lease.lease} ${lease.state}`).join(', '))],
    overview.shards.length && ['Shards', h('a', { href: '#/leases' }, overview.shards.map(shardText).join(', '))],
    overview.guards.length && ['Guards', h('a', { href: '#/guards' }, guardText(overview.guards))],
    overview.planned !== null && ['Plan mode', h('a', { href: '#/plan' }, `${counted(overview.planned, 'write')} not sent`)],
    ['Checks', checkText(overview.health.checks)],
    ['Uptime', seconds(overview.program.uptime)],
  ]);
}

const shardText = shards => `${shards.member ? 'one' : 'not one'} of ${counted(shards.members, 'member')}`;

function guardText(guards) {
  const tripped = guards.filter(guard => guard.tripped).length;
  return tripped ? `${tripped} of ${guards.length} tripped` : `${counted(guards.length, 'guard')}, none tripped`;
}

function checkText(checks) {
  const passed = checks.filter(check => check.ok).length;
  return `${passed} of ${checks.length} pass`;
}

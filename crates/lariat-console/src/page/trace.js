// Follows the causes of a run back to the first one.

import { apiPath, kindOnly } from './address.js';
import { get } from './api.js';
import { h } from './dom.js';
import { seconds } from './format.js';
import { causeText, code, objectLink } from './parts.js';

/** How many runs are followed back. */
const LIMIT = 20;

/** Whether a run was caused by another object's. */
export const canTrace = run => originOf(run) !== null;

/** The cause to follow: the one with the longest chain of those that have another object behind them. */
function originOf(run) {
  const linked = run.causes.filter(cause => cause.link);
  return linked.reduce((best, cause) => (best && best.chain >= cause.chain ? best : cause), null);
}

/** The runs that led to one, oldest first; they are read once, for what is past does not change. */
export function traceView(state, kind, key, run) {
  const name = `${apiPath({ kind, key })} ${run.run}`;
  const known = state.traces.get(name);
  if (!known) {
    state.traces.set(name, { steps: null });
    follow(kind, key, run).then(steps => state.traced(name, { steps }));
  }
  if (!known?.steps) return h('p', { class: 'empty' }, 'Following the causes…');
  return h('ol', { class: 'trace' }, known.steps.map((step, at) => h('li', { key: at }, stepText(step))));
}

/** A step: what happened to an object, and which handler of it went on. */
function stepText({ kind, key, causes, call, isLost }) {
  return [
    h('p', {}, objectLink(kind, key)),
    h('div', {},
      isLost && h('p', { class: 'quiet' }, 'The run is no longer kept.'),
      causes.map((cause, at) => h('p', { key: at }, causeText(cause, { link: false }))),
      call && h('p', { class: 'quiet' }, 'Then ', code(call.handler), ` ran for ${seconds(call.took)}: ${call.ended.replace('_', ' ')}.`)),
  ];
}

async function follow(kind, key, run) {
  const steps = [stepOf(kind, key, run, null)];
  const seen = new Set([`${apiPath({ kind, key })} ${run.run}`]);
  let cause = originOf(run);
  while (cause && steps.length < LIMIT) {
    const from = { kind: kindOnly(cause.link), key: cause.link.key };
    const earlier = await runBefore(from, cause, run).catch(() => null);
    const name = earlier && `${apiPath(from)} ${earlier.run}`;
    if (!earlier || seen.has(name)) {
      if (!earlier) steps.unshift({ ...from, causes: [], isLost: true });
      break;
    }
    seen.add(name);
    steps.unshift(stepOf(from.kind, from.key, earlier, cause.handler));
    run = earlier;
    cause = originOf(run);
  }
  return steps;
}

function stepOf(kind, key, run, handler) {
  const call = run.calls.find(it => it.handler === handler) ?? (handler ? null : run.calls[0]);
  return { kind, key, causes: run.causes, call };
}

/** The run of another object that caused one: the last that had begun by then, with the handler that is named. */
async function runBefore(from, cause, run) {
  const { runs } = await get(apiPath(from));
  const isBefore = it => Date.parse(it.at) <= Date.parse(run.at);
  const has = it => !cause.handler || it.calls.some(call => call.handler === cause.handler);
  return runs.find(it => it.run !== run.run && isBefore(it) && has(it)) ?? null;
}

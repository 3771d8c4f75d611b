// Follows the causes of a run back to the first one.

import { apiPath, kindOnly } from './address.js';
import { get } from './api.js';
import { h } from './dom.js';
import { seconds } from './format.js';
import { causeText, code, loading, objectLink } from './parts.js';

/** How many runs are followed back. */
const LIMIT = 20;

/** Whether another run, or another object, led to a run. */
export const canTrace = run => originOf(run) !== null;

/** The cause to follow: of those with an object or a handler behind them, the one with the longest chain. */
function originOf(run) {
  const followed = run.causes.filter(cause => cause.link || (cause.chain > 0 && cause.handler));
  return followed.reduce((best, cause) => (best && best.chain >= cause.chain ? best : cause), null);
}

/** The runs that led to one, oldest first; they are read once, for what is past does not change. */
export function traceView(state, kind, key, run) {
  const name = nameOf(kind, key, run);
  const known = state.traces.get(name);
  if (!known) {
    state.traces.set(name, { steps: null });
    follow(kind, key, run).then(steps => state.traced(name, { steps }));
  }
  if (!known?.steps) return loading();
  return h('ol', { class: 'trace' }, known.steps.map((step, at) => h('li', { key: at }, stepText(step))));
}

const nameOf = (kind, key, run) => `${apiPath({ kind, key })} ${run.run}`;

/** A step: what happened to an object, and which handler of it went on. */
function stepText({ kind, key, causes, call, note }) {
  return [
    h('p', {}, objectLink(kind, key)),
    h('div', {},
      causes.map((cause, at) => h('p', { key: at }, causeText(cause, { link: false }))),
      note && h('p', { key: 'note', class: 'quiet' }, note),
      call && h('p', { key: 'call', class: 'quiet' }, 'Then ', code(call.handler), ` ran for ${seconds(call.took)}: ${call.ended.replace('_', ' ')}.`)),
  ];
}

async function follow(kind, key, run) {
  let at = { kind: kindOnly(kind), key, run };
  const steps = [stepOf(at, null)];
  const seen = new Set([nameOf(kind, key, run)]);
  for (let cause = originOf(run); cause && steps.length < LIMIT; cause = originOf(at.run)) {
    const earlier = await before(at, cause);
    if (!earlier || seen.has(nameOf(earlier.kind, earlier.key, earlier.run))) {
      if (!earlier && cause.link) steps.unshift(firstStep(cause));
      break;
    }
    at = earlier;
    seen.add(nameOf(at.kind, at.key, at.run));
    steps.unshift(stepOf(at, cause.handler));
  }
  return steps;
}

function stepOf({ kind, key, run }, handler) {
  const call = handler ? run.calls.find(it => isIts(kind, it, handler)) : run.calls[0];
  return { kind, key, causes: run.causes, call };
}

/** What is known of the beginning, where no run of it is kept. */
function firstStep({ link, handler }) {
  const note = handler ? 'Its run is no longer kept.' : 'It was changed by another program.';
  return { kind: kindOnly(link), key: link.key, causes: [], note };
}

/** Returns the run that led to a cause of one: the last one before it, of the handler that is named. */
async function before({ kind, key, run }, cause) {
  const own = { kind, key };
  const linked = cause.link && { kind: kindOnly(cause.link), key: cause.link.key };
  // Of a related object that changed, the handler was called for another object: mostly for this one.
  const places = cause.what === 'related' ? [cause.handler && own, linked] : [linked ?? own];
  for (const place of places.filter(Boolean)) {
    const { runs } = await get(apiPath(place)).catch(() => ({ runs: [] }));
    // Runs are numbered as they begin, in the whole factory.
    const found = runs.find(it => it.run < run.run && (!cause.handler || it.calls.some(call => isIts(place.kind, call, cause.handler))));
    if (found) return { ...place, run: found };
  }
  return null;
}

/** Whether a call is of a handler, which causes name with its kind. */
const isIts = (kind, call, handler) => handler === call.handler || handler === `${kind.kind} ${call.handler}`;

// Follows the causes of a run back to the first one.

import { apiPath, kindOnly } from './address.js';
import { api } from './api.js';
import { h } from './dom.js';
import { seconds } from './numbers.js';
import { causeText, code, loading, objectLink } from './parts.js';

/** How many runs are followed back. */
const LIMIT = 20;

/** Whether another run, or another object, led to a run. */
export const canTrace = run => originOf(run) !== null;

/** The cause to follow: the first with a run behind it, or else with another object. */
function originOf(run) {
  return run.causes.find(cause => cause.byRun) ?? run.causes.find(cause => cause.link) ?? null;
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
    const earlier = cause.byRun && await read(cause.byRun);
    if (!earlier || seen.has(nameOf(earlier.kind, earlier.key, earlier.run))) {
      if (!earlier) steps.unshift(firstStep(cause));
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
function firstStep({ link, byRun }) {
  const note = byRun ? `Its run ${byRun.run} is no longer kept.` : 'It was changed by another program.';
  const at = byRun ?? link;
  return { kind: kindOnly(at), key: at.key, causes: [], note };
}

/** Returns the run that a cause names, if it is still kept. */
async function read(byRun) {
  const place = { kind: kindOnly(byRun), key: byRun.key };
  const { runs } = await api.get(apiPath(place)).catch(() => ({ runs: [] }));
  const run = runs.find(it => it.run === byRun.run);
  return run && { ...place, run };
}

/** Whether a call is of a handler, which causes name with its kind. */
const isIts = (kind, call, handler) => handler === call.handler || handler === `${kind.kind} ${call.handler}`;

// What is wrong, worst first, and what to do about it.

import { confirmed, perform } from './actions.js';
import { controllerAddress, kindOnly } from './address.js';
import { h } from './dom.js';
import { list } from './format.js';
import { count, counted, percent, seconds } from './numbers.js';
import { button, code, keyLink, kindLink, objectLink } from './parts.js';

/** A call that runs for longer is worth a look; a check fails after ten minutes. */
const LONG_CALL = 60;
const STUCK_CALL = 600;
/** How many of the last samples, one every two seconds, say that workers are busy throughout. */
const BUSY_SAMPLES = 30;
const SHOWN = 40;
const ORDER = { bad: 0, warn: 1, info: 2 };
const MEANING = { bad: 'Error', warn: 'Warning', info: 'Note' };

/**
 * Returns what needs attention.
 *
 * A finding has `key`, `level`, `what` (a sentence), and maybe `detail` (errors), `todo` and `action`. `details` has the
 * controllers whose errors are known, by their address.
 */
export function findings(overview, details) {
  const may = overview.allowed.actions;
  return [
    overview.health.checks.filter(check => !check.ok).map(failedCheck),
    overview.guards.filter(guard => guard.tripped).map(guard => trippedGuard(guard, may)),
    overview.controllers.flatMap(controller => ofController(controller, details, may)),
    overview.caches.map(ofCache),
    overview.hotLoops.map(hotLoop),
  ].flat().filter(Boolean).sort((a, b) => ORDER[a.level] - ORDER[b.level]);
}

/** The list of what needs attention. */
export function attention(found) {
  if (!found.length) return h('p', { class: 'calm' }, 'Nothing needs attention.');
  return [
    h('ul', { class: 'findings' }, found.slice(0, SHOWN).map(item)),
    found.length > SHOWN && h('p', { class: 'empty' }, `${count(found.length - SHOWN)} more, not shown.`),
  ];
}

const item = finding =>
  h('li', { key: finding.key, class: finding.level },
    h('span', { class: 'level' }, MEANING[finding.level]),
    h('div', {},
      h('p', { class: 'what' }, finding.what),
      finding.detail?.map((detail, at) => h('p', { key: at, class: 'error' }, detail)),
      finding.todo && h('p', { class: 'todo' }, finding.todo)),
    finding.action);

const failedCheck = check => ({
  key: `check ${check.name}`,
  level: 'bad',
  what: ['The check ', code(check.name), ' fails.'],
  detail: check.message ? [check.message] : [],
  todo: check.liveness
    ? 'It counts for /healthz: Kubernetes restarts the program if this lasts.'
    : check.readiness && 'It counts for /readyz: the Pod is not ready while this lasts.',
});

/** What names a guard among the others. */
export const guardKey = ({ context, operator, reconcilers, budgets }) =>
  `guard ${JSON.stringify([context, operator, reconcilers, budgets])}`;

const trippedGuard = (guard, may) => ({
  key: guardKey(guard),
  level: 'bad',
  what: ['The guard of ', code(guard.operator), ` has tripped: ${counted(guard.refused, 'write')} refused.`],
  detail: guard.reason ? [guard.reason] : [],
  todo: ['Find out what makes ', guard.reconcilers.length > 1 ? 'one of ' : '', list(guard.reconcilers), ' write so much, then reset the guard. Until then it refuses writes.'],
  action: may && resetButton(guard),
});

/** The button that resets a guard. */
export const resetButton = ({ context, operator, reconcilers, budgets }) => button('Reset…', () => confirmed(
  `Reset the guard of ${operator}?`,
  'Its reconcilers write again, up to the budgets. If the reason has not been mended, it will trip again.',
  'Reset', { action: 'reset-guard', context, operator, reconcilers, budgets },
));

/** Whether what is wrong with a controller is explained by its keys. */
export const needsDetail = controller =>
  controller.queue.longest >= LONG_CALL || controller.handlers.some(handler => handler.failing || handler.givenUp);

const ofController = (controller, details, may) => [
  controller.handlers.filter(handler => handler.failing).map(handler => failing(controller, handler, details)),
  controller.handlers.filter(handler => handler.givenUp).map(handler => givenUp(controller, handler, details)),
  controller.handlers.filter(isFailingNow).map(handler => failures(controller, handler)),
  stuck(controller, details),
  busy(controller),
  controller.handlers.filter(handler => handler.blocked).map(handler => blocked(controller, handler, may)),
].flat().filter(Boolean);

function failing(controller, handler, details) {
  const keys = details.get(controllerAddress(controller))?.failingKeys.filter(key => key.handler === handler.name) ?? [];
  const retried = keys.filter(key => key.retryIn !== null).map(key => key.retryIn);
  const todo = retried.length ? `The next retry is in ${seconds(Math.min(...retried))}.` : 'A retry is due.';
  return {
    key: `failing ${controllerAddress(controller)} ${handler.name}`,
    level: 'bad',
    what: [code(handler.name), ' of ', kindLink(controller), ` fails for ${counted(handler.failing, 'key')}.`],
    detail: keys.slice(0, 2).map(key => [keyLink(controller, key.key), key.error && `: ${key.error}`]),
    todo: keys.length ? todo : 'The errors are on the page of the controller.',
  };
}

function givenUp(controller, handler, details) {
  const keys = details.get(controllerAddress(controller))?.givenUpKeys.filter(key => key.handler === handler.name) ?? [];
  return {
    key: `given up ${controllerAddress(controller)} ${handler.name}`,
    level: 'bad',
    what: [code(handler.name), ' of ', kindLink(controller), ` has given up ${counted(handler.givenUp, 'key')}.`],
    detail: keys.slice(0, 2).map(key => [keyLink(controller, key.key), key.error && `: ${key.error}`]),
    todo: 'It is not called again for such a key until the object changes or the key is enqueued.',
  };
}

/** Whether calls of a handler fail although no key is failing or given up now. */
const isFailingNow = handler => handler.failureRate > 0 && !handler.failing && !handler.givenUp;

const failures = (controller, handler) => ({
  key: `failures ${controllerAddress(controller)} ${handler.name}`,
  level: 'warn',
  what: [percent(handler.failureRate, handler.rate), ' of the calls of ', code(handler.name), ' of ', kindLink(controller),
    ' failed in the last minute.'],
  todo: 'No key fails at present. The page of the controller has the last runs.',
});

function stuck(controller, details) {
  const longest = controller.queue.longest;
  if (longest < LONG_CALL) return null;
  const call = details.get(controllerAddress(controller))?.inProgress[0];
  return {
    key: `stuck ${controllerAddress(controller)}`,
    level: longest < STUCK_CALL ? 'warn' : 'bad',
    what: ['A call of ', call?.handler ? code(call.handler) : 'a handler', ' of ', kindLink(controller),
      ` has been running for ${seconds(longest)}`, call && [', for ', keyLink(controller, call.key)], '.'],
    todo: `It occupies one of ${counted(controller.workers ?? 0, 'worker')}. A handler with a timeout ends such calls.`,
  };
}

function busy(controller) {
  const samples = controller.samples.slice(-BUSY_SAMPLES);
  const isBusy = sample => sample.ready > 0 && sample.processing >= controller.workers;
  if (!controller.workers || samples.length < BUSY_SAMPLES || !samples.every(isBusy)) return null;
  return {
    key: `busy ${controllerAddress(controller)}`,
    level: 'warn',
    what: ['All workers of ', kindLink(controller), ` have been busy for a minute; ${counted(controller.queue.ready, 'key')} due.`],
    todo: 'Give it more workers, or make its slowest calls shorter.',
  };
}

function blocked(controller, handler, may) {
  const isPaused = handler.blocked === 'paused';
  const resume = { ...kindOnly(controller), action: 'resume', handler: handler.name };
  return {
    key: `blocked ${controllerAddress(controller)} ${handler.name}`,
    level: 'info',
    what: [code(handler.name), ' of ', kindLink(controller), ' ', isPaused ? 'is paused' : handler.blocked,
      `; ${counted(handler.waiting, 'key')} waiting.`],
    todo: isPaused ? 'It is not called until it is resumed.' : null,
    action: may && isPaused && button('Resume', () => perform(resume)),
  };
}

function ofCache(cache) {
  const address = controllerAddress(cache);
  const error = cache.lastError ? [cache.lastError] : [];
  const retry = cache.retryIn === null ? '' : ` The next attempt is in ${seconds(cache.retryIn)}.`;
  if (cache.stale) {
    const since = cache.lastReceived === null ? '' : ` Data was last received ${seconds(cache.lastReceived)} ago.`;
    return {
      key: `stale ${address}`,
      level: 'bad',
      what: ['The cache of ', kindLink(cache, { plain: true }), ' is stale: it has no watch.', since],
      detail: error,
      todo: `Handlers see an old state. ${advice(cache.lastError)}${retry}`,
    };
  }
  if (cache.blind != null) {
    return {
      key: `blind ${address}`,
      level: 'warn',
      what: [kindLink(cache, { plain: true }), ` has not been served for ${seconds(cache.blind)}.`],
      detail: error,
      todo: 'Its cached objects stay as they were, and none counts as deleted. Handlers see an old state.',
    };
  }
  if (!cache.synced && cache.lastError) {
    return {
      key: `unsynced ${address}`,
      level: 'bad',
      what: ['The cache of ', kindLink(cache, { plain: true }), ' cannot be filled.'],
      detail: error,
      todo: `No handler is called for the kind until it is. ${advice(cache.lastError)}${retry}`,
    };
  }
  return null;
}

function advice(error) {
  if (/forbidden|403/i.test(error ?? '')) return 'The service account needs the verbs list and watch for it.';
  if (/unauthorized|401/i.test(error ?? '')) return 'The credentials are not accepted.';
  return 'Look whether the API server answers.';
}

function hotLoop(loop) {
  const fields = loop.fields.length ? ` Fields: ${list(loop.fields)}.` : '';
  return {
    key: `loop ${controllerAddress(loop)} ${loop.key}`,
    level: 'warn',
    what: [objectLink(loop, loop.key), ' is in a hot loop of ', counted(loop.rounds, 'round'), '.'],
    detail: [[loop.pattern, fields]],
    todo: [loop.handlers.length ? [code(list(loop.handlers)), ' should write'] : 'Write', ' only what differs from the cached object.'],
  };
}

// A key: its state, and why it ran.

import { perform } from './actions.js';
import { controllerAddress, kindOnly } from './address.js';
import { h } from './dom.js';
import { apiVersion, keyName } from './format.js';
import { counted, seconds } from './numbers.js';
import { badge, button, causeText, code, lanes, loading, loopText, moment, section } from './parts.js';
import { canTrace, traceView } from './trace.js';

/** How many runs are shown before the rest is asked for. */
const SHOWN = 30;

export function keyView(state) {
  const { overview, detail, detailError, route } = state;
  const crumbs = h('p', { class: 'crumbs' },
    h('a', { href: controllerAddress(route.kind) }, route.kind.kind), ' ', h('span', { class: 'quiet' }, apiVersion(route.kind)));
  const title = h('h1', { tabindex: '-1', class: 'key' }, keyName(route.key));
  if (!detail) return [crumbs, h('div', { class: 'title' }, title), loading(detailError)];
  const [newest] = detail.runs;
  return [
    crumbs,
    h('div', { class: 'title' }, title, overview.allowed.actions && enqueueForm(overview, route)),
    section('Now', {}, h('ul', { class: 'now' }, now(detail))),
    newest && canTrace(newest) && section('How the newest run came about', { note: 'oldest cause first' },
      traceView(state, route.kind, route.key, newest)),
    section('History', { note: runsNote(detail) }, timeline(state)),
  ];
}

function enqueueForm(overview, route) {
  const controller = overview.controllers.find(it => controllerAddress(it) === controllerAddress(route.kind));
  const handlers = controller?.handlers.map(handler => handler.name) ?? [];
  const enqueue = event => {
    event.preventDefault();
    const handler = event.target.elements.handler.value || null;
    perform({ ...kindOnly(route.kind), action: 'enqueue', key: keyName(route.key), handler });
  };
  return h('form', { class: 'row', onsubmit: enqueue },
    h('label', { for: 'handler', class: 'sr' }, 'Handlers to call'),
    h('select', { id: 'handler', name: 'handler' },
      h('option', { value: '' }, 'all handlers'), handlers.map(name => h('option', { value: name, key: name }, name))),
    h('button', { type: 'submit' }, 'Enqueue'));
}

function now({ inProgress, queued, givenUp, hotLoop, resourceVersion }) {
  const last = queued?.lanes.reduce((most, lane) => Math.max(most, lane.failures), 0);
  return [
    hotLoop && h('li', { key: 'loop', class: 'warn' },
      `It is in a hot loop of ${counted(hotLoop.rounds, 'round')}. `, loopText(hotLoop)),
    inProgress && h('li', { key: 'call' },
      inProgress.handler ? code(inProgress.handler) : 'A run', ` has been running for ${seconds(inProgress.lasts)}.`),
    queued && h('li', { key: 'queue', class: last ? 'bad' : null },
      `In the queue: ${queued.state}, ${queued.priority} priority`,
      queued.dueFor ? `, due for ${seconds(queued.dueFor)}` : '', queued.lanes.length ? [': ', lanes(queued)] : '', '.'),
    givenUp.map(given => h('li', { key: `given up ${given.handler}`, class: 'bad' },
      code(given.handler), ` failed ${seconds(given.ago)} ago and is not called again until the object changes or the key is enqueued.`)),
    !inProgress && !queued && !givenUp.length && h('li', { key: 'idle' }, 'Nothing is due, delayed or running.'),
    h('li', { key: 'cache' }, resourceVersion ? ['Cached at the resource version ', code(resourceVersion), '.'] : 'The cache has no such object.'),
  ];
}

const runsNote = ({ runs }) => (runs.length ? `${counted(runs.length, 'run')}, newest first` : null);

function timeline(state) {
  const { detail, opened } = state;
  if (!detail.runs.length) return h('p', { class: 'empty' }, 'No run of this key is kept. The history has the last runs of the kind.');
  const shown = opened.all ? detail.runs : detail.runs.slice(0, SHOWN);
  const left = detail.runs.length - shown.length;
  return [
    h('ol', { class: 'timeline' }, shown.map((run, at) => runItem(state, run, at === 0))),
    left > 0 && button(`Show ${counted(left, 'older run')}`, () => state.open('all')),
  ];
}

function runItem(state, run, isNewest) {
  const { overview, opened, route } = state;
  const isTraced = opened[run.run];
  return h('li', { key: run.run, class: run.calls.some(call => call.failed) ? 'bad' : null },
    h('div', { class: 'when' },
      moment(run.at, overview),
      h('span', { class: 'quiet' }, `${seconds(run.ago)} ago`)),
    h('div', { class: 'run' },
      h('ul', { class: 'causes' }, run.causes.map((cause, at) => h('li', { key: at }, causeText(cause)))),
      h('ul', { class: 'calls' }, run.calls.map((call, at) => callItem(run, call, at === run.calls.length - 1 && isNewest))),
      h('p', { class: 'quiet small' }, `Run ${run.run}: due for ${seconds(run.waited)}, took ${seconds(run.took)}. `,
        !isNewest && canTrace(run) && !isTraced && button('Where did it come from?', () => state.open(run.run), { class: 'link' })),
      isTraced && traceView(state, route.kind, route.key, run)));
}

const TONES = { done: 'good', requeued: 'good', ignored: '' };

function callItem(run, call, isNewest) {
  const left = call.again === null || !isNewest ? null : call.again - run.ago + run.took;
  return h('li', { key: call.handler },
    code(call.handler), ' ',
    badge(call.ended.replace('_', ' '), call.failed ? 'bad' : TONES[call.ended]),
    h('span', {}, ` after ${seconds(call.took)}`,
      call.attempt > 1 && `, attempt ${call.attempt}`,
      call.conflict && ', a write was refused with a conflict',
      call.again !== null && `, again after ${seconds(call.again)}`,
      left > 0 && ` (in ${seconds(left)})`),
    call.error && h('p', { class: 'error' }, call.error),
    call.note && h('p', { class: 'quiet' }, call.note));
}

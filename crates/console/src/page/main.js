// The page: what is shown, where it comes from, and when it is drawn.

import './theme.js';
import { onUnauthorized } from './actions.js';
import { apiPath, controllerAddress, routeOf } from './address.js';
import { api, Live } from './api.js';
import { needsDetail } from './attention.js';
import { cachesView } from './caches.js';
import { controllerView } from './controller.js';
import { h, render } from './dom.js';
import { drawFrame } from './frame.js';
import { keyView } from './key.js';
import { tokenForm } from './login.js';
import { overviewView } from './overview.js';
import { drawSearch, selectKind } from './search.js';
import { guardsView, leasesView, planView } from './state.js';

const VIEWS = {
  overview: overviewView,
  controller: controllerView,
  key: keyView,
  caches: cachesView,
  leases: leasesView,
  guards: guardsView,
  plan: planView,
};

/** For how many controllers the list of what needs attention has the errors. */
const EXPLAINED = 5;

/** After which time what was refused is asked for again. */
const PATIENCE = 5000;

const view = document.getElementById('view');

const state = {
  route: routeOf(location.hash),
  overview: null,
  /** What the route shows beside the overview, and why it could not be read. */
  detail: null,
  detailError: null,
  /** Controllers with errors, by address. */
  details: new Map(),
  /** Why there is no connection. */
  lost: null,
  /** What the user has unfolded, and the causes that were followed, on the page of a key. */
  opened: {},
  traces: new Map(),
  open(name) {
    state.opened[name] = true;
    draw();
  },
  traced(name, trace) {
    state.traces.set(name, trace);
    draw();
  },
};

function draw() {
  drawFrame(state);
  if (!state.overview) return;
  drawSearch(state);
  const error = state.detailError && h('p', { class: 'notice bad', key: 'error' }, state.detailError.message);
  render(view, [error, h('div', { key: location.hash || '#/' }, VIEWS[state.route.view](state))]);
}

const askForToken = tokenForm(api, () => {
  state.detailError = null;
  live.restart();
  readDetail();
});

let reading = null;

/** Reads what the route shows beside the overview, unless that is under way. */
async function readDetail() {
  const { route } = state;
  const path = route.view === 'plan' ? 'plan' : route.kind && apiPath(route);
  const isRefused = state.detailError && Date.now() < state.detailError.at + PATIENCE;
  if (reading?.path === path || isRefused) return;
  reading?.abort.abort();
  reading = path ? { path, abort: new AbortController() } : null;
  if (!path) return;
  const mine = reading;
  const result = await api.get(path, mine.abort.signal)
    .then(detail => ({ detail, detailError: null }), error => ({ detailError: error }));
  if (reading !== mine) return;
  reading = null;
  // That the connection is lost is shown already.
  if (result.detailError?.code === 0) return;
  if (result.detailError) result.detailError.at = Date.now();
  if (result.detailError?.code === 401) askForToken(result.detailError.message);
  Object.assign(state, result);
  draw();
}

/** Reads the controllers whose errors are shown in the overview. */
function readErrors({ controllers }) {
  const wanted = controllers.filter(needsDetail).slice(0, EXPLAINED);
  const addresses = new Set(wanted.map(controllerAddress));
  for (const address of state.details.keys()) if (!addresses.has(address)) state.details.delete(address);
  for (const controller of wanted) readErrorsOf(controller, controllerAddress(controller));
}

const explaining = new Set();

async function readErrorsOf(controller, address) {
  if (explaining.has(address)) return;
  explaining.add(address);
  try {
    state.details.set(address, await api.get(apiPath({ kind: controller })));
    draw();
  } catch {
    // The counts are shown without errors; that the connection is lost is shown already.
  } finally {
    explaining.delete(address);
  }
}

function navigate() {
  state.route = routeOf(location.hash);
  Object.assign(state, { detail: null, detailError: null, opened: {}, traces: new Map() });
  selectKind(state.route);
  draw();
  readDetail();
  window.scrollTo(0, 0);
  view.querySelector('h1')?.focus({ preventScroll: true });
}

const live = new Live({
  overview(overview) {
    Object.assign(state, { overview, lost: null });
    draw();
    readErrors(overview);
    readDetail();
  },
  lost(error) {
    state.lost = { error };
    if (error.code === 401) askForToken(error.message);
    draw();
  },
});

document.querySelector('#connection button').onclick = () => askForToken('');
onUnauthorized(askForToken);
addEventListener('hashchange', navigate);
addEventListener('online', () => document.hidden || live.restart());
document.addEventListener('visibilitychange', () => (document.hidden ? live.pause() : live.restart()));
addEventListener('pagehide', () => live.pause());
addEventListener('pageshow', event => event.persisted && live.restart());
document.querySelector('.skip').onclick = event => {
  event.preventDefault();
  view.focus();
};
draw();
if (!document.hidden) live.restart();
readDetail();

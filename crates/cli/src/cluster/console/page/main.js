// The page of the embedded cluster: where its state comes from, and what the user does.

import { $ } from './dom.js';
import { Api } from './http.js';
import { tokenForm } from './login.js';
import { remember, requests, show } from './view.js';

const api = new Api('api/v1/', { key: 'lariat-cluster-token', server: 'the cluster', cache: 'no-store' });
const askForToken = tokenForm(api);

let paused = false;
let shown = null;

function draw(state) {
  shown = state;
  remember(state);
  show(state, removeFault);
  document.documentElement.dataset.ready = 'true';
}

async function act(method, path, body) {
  try {
    const answer = await api.send(method, path, body);
    fail('');
    $('done').textContent = answer.message;
    draw(await api.get('state'));
    return true;
  } catch (error) {
    if (error.code === 401) identify(error.message);
    else fail(error.message);
    return false;
  }
}

async function removeFault(fault) {
  if (await act('DELETE', `faults/${fault.id}`)) $('effect').focus();
}

function fail(message) {
  $('error').textContent = message;
  $('error').hidden = !message;
}

// Reads states as they come, and begins again when they end.
async function follow() {
  let isLost = false;
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      for await (const { data } of api.events('state?watch=true')) {
        wait = 500;
        live('on', 'live');
        // What an action was refused for stays.
        if (isLost) fail('');
        isLost = false;
        if (!data) continue;
        const state = JSON.parse(data);
        if (paused) remember(state);
        else draw(state);
      }
    } catch (error) {
      if (error.code === 401) {
        live('lost', 'no token');
        await identify(error.message);
        continue;
      }
      isLost = true;
      fail(error.code ? `The cluster refuses: ${error.message}` : 'The cluster does not answer.');
    }
    live('lost', 'not connected');
    await new Promise(done => setTimeout(done, wait));
  }
}

function live(name, text) {
  $('live').className = name;
  $('live').textContent = text;
}

function rule() {
  const text = id => $(id).value.trim() || undefined;
  const actions = {
    429: { refuse: { code: 429, retryAfterSeconds: 1 } },
    500: { refuse: { code: 500 } },
    503: { refuse: { code: 503 } },
    delay: { delay: { seconds: Number($('seconds').value) } },
    expired: 'gone',
    conflict: 'conflict',
  };
  const times = text('times');
  const action = actions[$('effect').value];
  return { action, kind: text('kind'), verb: text('verb'), client: text('client'), times: times && Number(times) };
}

function choose() {
  const effect = $('effect').value;
  for (const field of document.querySelectorAll('.for-rule')) field.hidden = effect === 'isolate';
  $('seconds-field').hidden = effect !== 'delay';
  $('seconds').disabled = effect !== 'delay';
  $('silent-field').hidden = effect !== 'isolate';
}

function identify(why) {
  $('identify').hidden = false;
  return askForToken(why);
}

$('effect').addEventListener('change', choose);
$('fault-form').addEventListener('submit', event => {
  event.preventDefault();
  if ($('effect').value === 'isolate') {
    act('POST', 'faults/isolate', { client: $('client').value.trim(), silent: $('silent').checked });
  } else {
    act('POST', 'faults', rule());
  }
});
$('remove-all').addEventListener('click', () => act('DELETE', 'faults'));
for (const button of document.querySelectorAll('[data-once]')) {
  button.addEventListener('click', () => act('POST', button.dataset.once));
}
for (const id of ['filter', 'failed']) $(id).addEventListener('input', () => shown && requests(shown));
$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  $('pause').textContent = paused ? 'Go on' : 'Pause';
});
$('identify').addEventListener('click', () => identify(''));

choose();
follow();

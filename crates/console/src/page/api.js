// Requests to the API, the token they carry, and the stream of overviews.

const TOKEN = 'lariat-console-token';

/** How long the stream may be silent; the server sends every second. */
const SILENCE = 6000;
const DELAYS = [500, 1000, 2000, 4000];

/** An answer that is an error, or none at all (then `code` is 0). */
export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The bearer token, which this tab keeps until it is closed. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: value => sessionStorage.setItem(TOKEN, value),
  clear: () => sessionStorage.removeItem(TOKEN),
};

async function request(path, init = {}) {
  const headers = { accept: 'application/json', ...init.headers };
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  let response;
  try {
    response = await fetch(`api/v1/${path}`, { cache: 'no-store', redirect: 'error', ...init, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'the program does not answer');
  }
  if (!response.ok) throw new ApiError(response.status, await messageOf(response));
  return response;
}

/** The message of a `Status`, or what else is known. */
async function messageOf(response) {
  const text = await response.text().catch(() => '');
  try {
    const status = JSON.parse(text);
    if (status.message) return status.message;
  } catch {
    // It is no Status, as from a proxy.
  }
  return text.trim().slice(0, 300) || `HTTP ${response.status} ${response.statusText}`.trim();
}

export const get = async (path, signal) => (await request(path, { signal })).json();

/** Sends an action; returns what was done, as a sentence. */
export async function act(action) {
  const body = JSON.stringify(action);
  const response = await request('actions', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return (await response.json()).message;
}

/**
 * Follows the overview, and connects again whenever the connection is lost.
 *
 * An EventSource would not send the token. `restart` connects at once, as after the token has changed. A page that is
 * not seen should be paused: browsers allow six connections to a server, for all tabs together.
 */
export class Live {
  #listener;
  #abort = null;
  #failures = 0;
  #timer = 0;

  constructor(listener) {
    this.#listener = listener;
  }

  restart() {
    this.#failures = 0;
    this.#connect();
  }

  pause() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
  }

  #connect() {
    this.pause();
    const abort = new AbortController();
    this.#abort = abort;
    this.#follow(abort).then(
      () => this.#lost(abort, new ApiError(0, 'the program has closed the connection')),
      error => this.#lost(abort, error),
    );
  }

  async #follow(abort) {
    const silence = new Watchdog(abort);
    try {
      const headers = { accept: 'text/event-stream' };
      const response = await request('overview?watch=true', { headers, signal: abort.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new Events();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        silence.heard();
        for (const event of events.take(value)) this.#event(abort, event);
      }
    } finally {
      silence.end();
    }
  }

  #event(abort, { name, data }) {
    if (abort !== this.#abort || name !== 'overview') return;
    this.#failures = 0;
    this.#listener.overview(JSON.parse(data));
  }

  #lost(abort, error) {
    // Another connection has taken its place.
    if (abort !== this.#abort) return;
    const delay = DELAYS[Math.min(this.#failures, DELAYS.length - 1)];
    this.#failures += 1;
    this.#listener.lost(error instanceof ApiError ? error : new ApiError(0, 'the program does not answer'));
    // Without another token the answer would be the same.
    if (error.code !== 401) this.#timer = setTimeout(() => this.#connect(), delay);
  }
}

/** Ends a connection that has been silent for too long. */
class Watchdog {
  #abort;
  #timer;

  constructor(abort) {
    this.#abort = abort;
    this.heard();
  }

  heard() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), SILENCE);
  }

  end() {
    clearTimeout(this.#timer);
  }
}

/** Cuts a stream into server-sent events. */
class Events {
  #rest = '';

  take(text) {
    const blocks = (this.#rest + text).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = blocks.pop();
    return blocks.map(block => this.#event(block)).filter(event => event.data);
  }

  #event(block) {
    const event = { name: 'message', data: '' };
    for (const line of block.split('\n')) {
      const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (field === 'event') event.name = value;
      if (field === 'data') event.data += value;
    }
    return event;
  }
}

// The API of the program: what it has, what it does, and the stream of overviews.

import { Api, ApiError } from './http.js';

export const api = new Api('api/v1/', {
  key: 'lariat-console-token', server: 'the program', cache: 'no-store', redirect: 'error',
});

/** How long the stream may be silent; the server sends every second. */
const SILENCE = 6000;
const DELAYS = [500, 1000, 2000, 4000];

/** Sends an action; returns what was done, as a sentence. */
export const act = async action => (await api.send('POST', 'actions', action)).message;

/**
 * Follows the overview, and connects again whenever the connection is lost.
 *
 * `restart` connects at once, as after the token has changed. A page that is not seen should be paused: browsers allow
 * six connections to a server, for all tabs together.
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
      const events = api.events('overview?watch=true', { signal: abort.signal, heard: () => silence.heard() });
      for await (const event of events) this.#event(abort, event);
    } finally {
      silence.end();
    }
  }

  #event(abort, { name, data }) {
    if (abort !== this.#abort || name !== 'overview' || !data) return;
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

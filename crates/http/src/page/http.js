// Requests to the API a page belongs to, the token they carry, and streams of events.

/** An answer that is an error, or none at all (then `code` is 0); `after` is how many seconds to wait, if it says so. */
export class ApiError extends Error {
  constructor(code, message, after = 0) {
    super(message);
    this.code = code;
    this.after = after;
  }
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

/** An API whose paths begin with `base`. */
export class Api {
  #base;
  #key;
  #server;
  #options;

  /**
   * This tab keeps the bearer token under `key` until it is closed. `server` is what does not answer if nothing does,
   * and all else are options of `fetch`.
   */
  constructor(base, { key, server, ...options }) {
    this.#base = base;
    this.#key = key;
    this.#server = server;
    this.#options = options;
  }

  get token() {
    return sessionStorage.getItem(this.#key);
  }

  set token(token) {
    sessionStorage.setItem(this.#key, token);
  }

  /** Sends a request; whatever is not a success throws an `ApiError`, unless the request is aborted. */
  async request(path, { headers, ...init } = {}) {
    const all = { accept: 'application/json', ...headers };
    if (this.token) all.authorization = `Bearer ${this.token}`;
    let response;
    try {
      response = await fetch(this.#base + path, { ...this.#options, ...init, headers: all });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, `${this.#server} does not answer`);
    }
    if (response.ok) return response;
    throw new ApiError(response.status, await messageOf(response), Number(response.headers.get('retry-after')) || 0);
  }

  /** Returns what a path has. */
  async get(path, signal) {
    return (await this.request(path, { signal })).json();
  }

  /** Sends a body as JSON, if there is one, and returns the answer. */
  async send(method, path, body) {
    const json = { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return (await this.request(path, { method, ...(body === undefined ? {} : json) })).json();
  }

  /**
   * Follows the server-sent events of a path, each with `name`, `id` and `data`; a comment has no data. `heard` is called
   * whenever bytes have arrived.
   *
   * An EventSource would not send the token.
   */
  async* events(path, { headers, signal, heard = () => {} } = {}) {
    const response = await this.request(path, { headers: { accept: 'text/event-stream', ...headers }, signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let unread = '';
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        const blocks = (unread + value).replaceAll('\r\n', '\n').split('\n\n');
        unread = blocks.pop();
        for (const block of blocks) yield eventOf(block);
      }
    } finally {
      // Whoever ends the loop earlier does not keep the connection.
      reader.cancel().catch(() => {});
    }
  }
}

function eventOf(block) {
  const fields = {};
  for (const line of block.split('\n')) {
    const [, field, value] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
    if (field) fields[field] = field === 'data' && 'data' in fields ? `${fields.data}\n${value}` : value;
  }
  return { name: fields.event ?? 'message', id: fields.id, data: fields.data };
}

// Asks for the bearer token, when an answer was 401.

import { token } from './api.js';

const dialog = document.getElementById('login');
const field = document.getElementById('token');
const refused = document.getElementById('refused');

let entered = () => {};

/** Sets what is done once a token was entered. */
export function onToken(listener) {
  entered = listener;
}

/** Shows the form; it says why the token that was sent is refused. */
export function askForToken(message) {
  refused.textContent = token.get() ? message : '';
  if (!dialog.open) dialog.showModal();
}

document.querySelector('#connection button').onclick = () => askForToken('');

dialog.querySelector('form').onsubmit = event => {
  event.preventDefault();
  const text = field.value.trim();
  field.value = '';
  if (!text) return;
  token.set(text);
  dialog.close();
  entered();
};

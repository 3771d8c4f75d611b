// What a user may do, and what came of it.

import { act } from './api.js';

const outcome = document.getElementById('outcome');
const dialog = document.getElementById('confirm');

let needsToken = () => {};

/** Sets what is done when an action is refused for want of a token. */
export function onUnauthorized(listener) {
  needsToken = listener;
}

/** Sends an action, and says what was done or why it was refused. */
export async function perform(action) {
  say('');
  try {
    say(await act(action));
  } catch (error) {
    say(`Refused: ${error.message}`, 'bad');
    if (error.code === 401) needsToken(error.message);
  }
}

/** Sends an action once the user has confirmed it. */
export function confirmed(question, consequence, verb, action) {
  const [title, text, yes] = ['h2', 'p', '.main'].map(name => dialog.querySelector(name));
  title.textContent = question;
  text.textContent = consequence;
  yes.textContent = verb;
  yes.onclick = () => {
    dialog.close();
    perform(action);
  };
  dialog.showModal();
}

/** Shows a text that is also read out. */
export function say(text, tone = '') {
  outcome.querySelector('p').textContent = text;
  outcome.className = tone;
  outcome.hidden = false;
  outcome.classList.toggle('silent', !text);
}

dialog.querySelector('.cancel').onclick = () => dialog.close();
outcome.querySelector('button').onclick = () => say('');

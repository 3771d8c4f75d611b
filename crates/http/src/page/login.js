// Asks for the bearer token, when an answer was 401.

/**
 * Returns a function that shows the form; it says why the token that was sent is refused, and waits until the form is
 * closed. `entered` is called once a token was entered.
 */
export function tokenForm(api, entered = () => {}) {
  const [dialog, field, refused] = ['login', 'token', 'refused'].map(id => document.getElementById(id));
  dialog.querySelector('form').onsubmit = event => {
    event.preventDefault();
    api.token = field.value.trim();
    field.value = '';
    dialog.close();
    entered();
  };
  return message => {
    refused.textContent = api.token ? message : '';
    refused.hidden = !refused.textContent;
    const closed = new Promise(done => dialog.addEventListener('close', done, { once: true }));
    if (!dialog.open) dialog.showModal();
    return closed;
  };
}

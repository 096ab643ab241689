// Lets the reader try operations as the user who is signed in to the console of the same origin.

const KEY = 'kontor.session';

/** The console's session while it is valid: {access_token, login, user_id}; otherwise null. */
function readSession() {
  try {
    const session = JSON.parse(localStorage.getItem(KEY));
    return session?.access_token && session.expires_at > Date.now() ? session : null;
  } catch {
    return null;
  }
}

/**
 * Shows the switch for the console's session and returns the function that adds its token to requests. The switch is off
 * whenever the page is opened: nothing is sent as a user who has not said so.
 * @param {HTMLElement} bar the line below the head of the page
 */
export function offerSession(bar) {
  let used = false;
  const box = document.createElement('input');
  box.type = 'checkbox';
  const text = document.createElement('span');
  const label = document.createElement('label');
  label.append(box, text);
  const note = document.createElement('span');
  note.className = 'session-note';
  note.setAttribute('role', 'status');
  bar.append(label, note);

  function show() {
    const session = readSession();
    if (!session) used = false;
    box.checked = used;
    box.disabled = !session;
    text.textContent = session ? `Use the console’s session of ${session.login ?? session.user_id}` : 'Use the console’s session';
    bar.classList.toggle('active', used);
    note.textContent = used
      ? 'Requests are real: they read and change the bank’s data as this user.'
      : session ? 'Requests are sent without a token.' : 'You are not signed in to the console, or its token has expired.';
  }
  box.addEventListener('change', () => {
    used = box.checked;
    show();
  });
  addEventListener('storage', show);
  addEventListener('focus', show);
  show();

  return (request) => {
    const session = readSession();
    const own = new URL(request.url, location.href).origin === location.origin;
    if (!used || !own || request.headers?.Authorization) return request;
    if (!session) show(); // It has expired meanwhile.
    else request.headers = { ...request.headers, Authorization: `Bearer ${session.access_token}` };
    return request;
  };
}

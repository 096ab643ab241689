// A portal for customers of one page. It runs on a server of the bank, calls Kontor as the customer who has signed in, and keeps
// the tokens away from the browser, which gets a random cookie only.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

import { Kontor, KontorError, SecondFactorRequired } from 'kontor-client';

const address = process.env.KONTOR_URL ?? 'http://localhost:8080';
const port = Number(process.env.PORT ?? 8090);
const maxForm = 10_000; // bytes
const maxSessions = 1_000;

/** A customer who has signed in, or has still to enter the code of a second factor. */
interface Session {
  kontor: Kontor;
  waiting?: SecondFactorRequired;
}

const sessions = new Map<string, Session>();

const escape = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const page = (body: string) => `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>My bank</title><body><main><h1>My bank</h1>${body}</main></body></html>`;

const note = (text: string) => (text ? `<p role="alert">${escape(text)}</p>` : '');

const signInForm = (problem = '') => page(`${note(problem)}<form method="post" action="/sign-in">
<p><label>E-mail <input name="login" type="email" autocomplete="username" required></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>
<button>Sign in</button></form>`);

const codeForm = (problem = '') => page(`${note(problem)}<form method="post" action="/code">
<p><label>Code of your authenticator app <input name="code" inputmode="numeric" autocomplete="one-time-code" required></label></p>
<button>Continue</button></form>`);

/** What the customer sees: the records that they may read, and the newest notifications. */
async function home(kontor: Kontor): Promise<string> {
  const [me, customers, news] = await Promise.all([kontor.users.me(), kontor.customers.list({ limit: 5 }), kontor.notifications.list({ limit: 5 })]);
  const rows = customers.data.map((c) => `<li>${escape(`${c.first_name} ${c.last_name}`)}: ${escape(c.kyc_status.replaceAll('_', ' '))}</li>`);
  const items = news.data.map((n) => `<li>${escape(n.title)}</li>`);
  return page(`<p>Signed in as ${escape(me.display_name ?? 'a customer')}.</p>
<h2>Your verification</h2><ul>${rows.join('') || '<li>There is no record yet.</li>'}</ul>
<h2>News</h2><ul>${items.join('') || '<li>Nothing new.</li>'}</ul>
<form method="post" action="/sign-out"><button>Sign out</button></form>`);
}

/** Reads a form, up to its largest size. */
async function form(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const part of request) {
    text += part;
    if (text.length > maxForm) throw new Error('the form is too long');
  }
  return new URLSearchParams(text);
}

const sessionId = (request: IncomingMessage) => /(?:^|; )portal=([0-9a-f-]{36})/.exec(request.headers.cookie ?? '')?.[1] ?? '';

function send(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}) {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'", ...headers,
  });
  response.end(body);
}

const goHome = (response: ServerResponse, cookie = '') => send(response, 303, '', { Location: '/', ...(cookie && { 'Set-Cookie': cookie }) });

/** Begins a session with a new cookie, also when the browser sent one: an attacker may have chosen that. */
async function signIn(request: IncomingMessage, response: ServerResponse) {
  const input = await form(request);
  const session: Session = { kontor: new Kontor(address) };
  try {
    await session.kontor.signIn(input.get('login') ?? '', input.get('password') ?? '');
  } catch (error) {
    if (error instanceof KontorError) return send(response, error.status, signInForm(error.message));
    if (!(error instanceof SecondFactorRequired)) throw error;
    session.waiting = error;
  }
  const oldest = sessions.keys().next().value;
  if (sessions.size >= maxSessions && oldest !== undefined) sessions.delete(oldest);
  const id = randomUUID();
  sessions.set(id, session);
  goHome(response, `portal=${id}; HttpOnly; SameSite=Strict; Path=/`); // Add "; Secure" behind TLS.
}

async function enterCode(request: IncomingMessage, response: ServerResponse, session: Session) {
  const input = await form(request);
  try {
    await session.waiting?.code(input.get('code') ?? '');
    delete session.waiting;
  } catch (error) {
    if (!(error instanceof KontorError)) throw error;
    return send(response, error.status, codeForm(error.message));
  }
  goHome(response);
}

async function answer(request: IncomingMessage, response: ServerResponse) {
  const id = sessionId(request);
  const session = sessions.get(id);
  switch (`${request.method} ${request.url}`) {
    case 'GET /':
      if (!session) return send(response, 200, signInForm());
      return send(response, 200, session.waiting ? codeForm() : await home(session.kontor));
    case 'POST /sign-in':
      return signIn(request, response);
    case 'POST /code':
      return session ? enterCode(request, response, session) : goHome(response);
    case 'POST /sign-out':
      sessions.delete(id);
      if (session && !session.waiting) await session.kontor.signOut();
      return goHome(response, 'portal=; Max-Age=0; Path=/');
    default:
      return send(response, 404, page('<p>This page does not exist.</p>'));
  }
}

createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    if (error instanceof KontorError && error.status === 401) sessions.delete(sessionId(request));
    console.error(error);
    if (!response.headersSent) send(response, 502, page('<p>The bank does not answer at the moment.</p>'));
  });
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));

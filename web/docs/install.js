// The lines that install the clients of the API from this service, each with a button that copies it.

const SHOWN_MS = 2_000;

const lines = (origin) => [
  ['TypeScript and JavaScript', `npm install ${origin}/sdk/kontor-client.tgz`],
  ['Go', `GOPROXY=${origin}/sdk/go,https://proxy.golang.org GONOSUMDB=kontor.local go get kontor.local/client@latest`],
  ['Browser', `import { Kontor } from '${origin}/sdk/kontor-client.js';`],
];

/** Fills the box with the lines for the origin of this page. */
export function showClients(box) {
  for (const [title, line] of lines(location.origin)) {
    const row = document.createElement('p');
    const name = document.createElement('strong');
    const code = document.createElement('code');
    const copy = document.createElement('button');
    name.textContent = title;
    code.textContent = line;
    copy.type = 'button';
    copy.textContent = 'Copy';
    copy.setAttribute('aria-label', `Copy the line for ${title}`);
    copy.addEventListener('click', async () => {
      await navigator.clipboard.writeText(line);
      copy.textContent = 'Copied';
      setTimeout(() => (copy.textContent = 'Copy'), SHOWN_MS);
    });
    row.append(name, code, copy);
    box.append(row);
  }
}

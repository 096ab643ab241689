// Shows the API document. "Try it out" sends requests to the origin of this page, whatever address the service is
// configured with: the content security policy allows no other origin.

import { keepAccessible } from './accessible.js';
import { examplePlugin } from './example_panel.js';
import { showClients } from './install.js';
import { offerSession } from './session.js';
import { fillSidebar } from './sidebar.js';

const root = document.documentElement;
const button = document.getElementById('theme');

function showTheme() {
  const dark = root.classList.contains('dark-mode');
  button.setAttribute('aria-pressed', String(dark));
}

button.addEventListener('click', () => {
  root.classList.toggle('dark-mode');
  showTheme();
});
showTheme();

// The explorer fills a parameter's field with its example. An optional parameter would then become an unintended
// filter, key or condition, so its example moves into the description.
function leaveOptionalEmpty(parameters) {
  for (const parameter of parameters) {
    if (parameter.required || parameter.example === undefined) continue;
    parameter.description += ` For example: \`${parameter.example}\`.`;
    delete parameter.example;
  }
}

showClients(document.getElementById('install'));
const explorer = document.getElementById('explorer');
const withSession = offerSession(document.getElementById('session'));
const side = document.getElementById('side-box');
const narrow = matchMedia('(max-width: 999px)');
const foldSide = () => (side.open = !narrow.matches);
narrow.addEventListener('change', foldSide);
foldSide();

const OPEN_LIMIT_MS = 15_000; // A slow machine reads the document for some seconds.
const RETRY_MS = 50;

/** Opens an operation of the explorer, scrolls to it and focuses it. */
function openOperation(ui, tag, id) {
  if (narrow.matches) side.open = false;
  const escaped = (text) => CSS.escape(text.trim().replaceAll(/\s/g, '_')); // as the explorer does
  const place = `operations-${escaped(tag)}-${escaped(id)}`;
  const begun = performance.now();
  const reveal = () => {
    const block = document.getElementById(place);
    if (!block?.classList.contains('is-open') && performance.now() - begun < OPEN_LIMIT_MS) {
      ui.layoutActions.show(['operations-tag', tag], true); // The explorer forgets it while it still reads the document.
      ui.layoutActions.show(['operations', tag, id], true);
      return setTimeout(reveal, RETRY_MS);
    }
    block?.scrollIntoView({ block: 'start' });
    return block?.querySelector('button.opblock-summary-control')?.focus({ preventScroll: true });
  };
  reveal();
}

keepAccessible(explorer);

async function load() {
  const response = await fetch('/openapi.json', { headers: { Accept: 'application/json' } });
  if (!response.ok) throw new Error(`/openapi.json answered ${response.status}`);
  const spec = await response.json();
  spec.servers = [{ url: location.origin, description: 'This service' }];
  leaveOptionalEmpty(Object.values(spec.components.parameters));
  for (const path of Object.values(spec.paths)) {
    for (const operation of Object.values(path)) leaveOptionalEmpty(operation.parameters ?? []);
  }
  const ui = globalThis.SwaggerUIBundle({
    spec,
    domNode: explorer,
    presets: [globalThis.SwaggerUIBundle.presets.apis],
    layout: 'BaseLayout',
    deepLinking: true,
    docExpansion: 'none',
    defaultModelsExpandDepth: 0,
    defaultModelExpandDepth: 3,
    displayOperationId: true,
    displayRequestDuration: true,
    showExtensions: false,
    requestInterceptor: withSession,
    plugins: [examplePlugin(spec)],
    persistAuthorization: false, // A token must not be stored in the browser.
    validatorUrl: null, // no request to a foreign validator
  });
  fillSidebar(side, spec, (tag, id) => openOperation(ui, tag, id));
}

load().catch((error) => {
  const text = document.createElement('p');
  text.className = 'failure';
  text.textContent = `The document could not be shown: ${error.message}`;
  explorer.replaceChildren(text);
});

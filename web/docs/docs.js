// Shows the API document. The requests of "Try it out" go to where this page came from, whatever name the service has
// for itself: the content security policy allows no other place.

import { keepAccessible } from './accessible.js';

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

// The explorer fills the example of a parameter into its field. For one that may be left out this would be a filter, a
// key or a condition that nobody meant, so that the example goes into the description.
function leaveOptionalEmpty(parameters) {
  for (const parameter of parameters) {
    if (parameter.required || parameter.example === undefined) continue;
    parameter.description += ` For example: \`${parameter.example}\`.`;
    delete parameter.example;
  }
}

const explorer = document.getElementById('explorer');

keepAccessible(explorer);

async function load() {
  const answer = await fetch('/openapi.json', { headers: { Accept: 'application/json' } });
  if (!answer.ok) throw new Error(`/openapi.json answered ${answer.status}`);
  const spec = await answer.json();
  spec.servers = [{ url: location.origin, description: 'This service' }];
  leaveOptionalEmpty(Object.values(spec.components.parameters));
  for (const path of Object.values(spec.paths)) {
    for (const operation of Object.values(path)) leaveOptionalEmpty(operation.parameters ?? []);
  }
  globalThis.SwaggerUIBundle({
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
    filter: true,
    showExtensions: false,
    requestSnippetsEnabled: true,
    persistAuthorization: false, // a token is not for the storage of a browser
    validatorUrl: null, // asks nobody else
  });
}

load().catch((error) => {
  const text = document.createElement('p');
  text.className = 'failure';
  text.textContent = `The document could not be shown: ${error.message}`;
  explorer.replaceChildren(text);
});

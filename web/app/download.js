import { send } from './api.js';

/**
 * Offers a text or a file for download.
 * @param {string} name
 * @param {string|Blob} content
 */
export function offerFile(name, content) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: 'text/plain' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

/**
 * Downloads a file of the API, with the name that the server suggests. A link could not carry the access token.
 * @param {string} path
 * @param {string} name for an answer that suggests none
 * @param {{query?: object, headers?: object}} [options]
 */
export async function downloadFile(path, name, options) {
  const response = await send('GET', path, options);
  const suggested = /filename="([^"/\\]+)"/.exec(response.headers.get('Content-Disposition') ?? '')?.[1];
  offerFile(suggested ?? name, await response.blob());
}

import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { caller } from '../access.js';
import { send } from '../api.js';
import { downloadFile } from '../download.js';
import { t } from '../i18n.js';
import { store } from '../store.js';
import { Dialog } from './dialog.js';
import { ErrorBox, Skeleton } from './feedback.js';
import { Icon } from './icon.js';

/** The ids of the files of which the user has seen a page large, or downloaded the original. */
export const seenFiles = store(new Set());
caller.watch((now) => now || seenFiles.set(new Set()));

const markSeen = (id) => seenFiles.set((was) => (was.has(id) ? was : new Set(was).add(id)));

/** Loads a picture of a page as {bitmap, pages, error}. A link could not carry the access token. */
function usePreview(id, page, width, wanted = true) {
  const [state, setState] = useState({});
  useEffect(() => {
    if (!wanted) return undefined;
    const stop = new AbortController();
    let bitmap;
    setState({});
    (async () => {
      try {
        const response = await send('GET', `/v1/files/${id}/preview`, { query: { page, width }, signal: stop.signal });
        bitmap = await createImageBitmap(await response.blob());
        if (stop.signal.aborted) bitmap.close();
        else setState({ bitmap, pages: Number(response.headers.get('X-Page-Count')) });
      } catch (error) {
        if (!stop.signal.aborted) setState({ error });
      }
    })();
    return () => {
      stop.abort();
      bitmap?.close();
    };
  }, [id, page, width, wanted]);
  return state;
}

/**
 * Draws a picture, turned by quarters to the right. The policy of the console allows no pictures from memory in an img element.
 * @param {{bitmap: ImageBitmap, label?: string, quarters?: number, zoom?: number}} props
 */
function Picture({ bitmap, label, quarters = 0, zoom }) {
  const canvas = useRef();
  useLayoutEffect(() => {
    const lies = quarters % 2 === 1;
    const [width, height] = lies ? [bitmap.height, bitmap.width] : [bitmap.width, bitmap.height];
    Object.assign(canvas.current, { width, height });
    const context = canvas.current.getContext('2d');
    context.translate(width / 2, height / 2);
    context.rotate((quarters * Math.PI) / 2);
    context.drawImage(bitmap, -bitmap.width / 2, -bitmap.height / 2);
  }, [bitmap, quarters]);
  const meaning = label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' };
  const style = zoom > 1 ? { width: `${zoom * 100}%`, maxWidth: 'none' } : undefined;
  return html`<canvas ref=${canvas} style=${style} ...${meaning}></canvas>`;
}

const THUMBNAIL = 160; // pixels, for screens with two pixels to a point
const LARGEST = 1600;

/** A small picture of the first page, loaded when it comes into view. Files without a preview have a drawing. */
export function Thumbnail({ file }) {
  const place = useRef();
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && setSeen(true));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  const width = seen ? Math.min(LARGEST, Math.max(THUMBNAIL, Math.ceil(place.current.offsetWidth * devicePixelRatio))) : THUMBNAIL;
  const first = useRef(0); // A change of the window does not load the picture again.
  if (seen) first.current ||= width;
  const preview = usePreview(file.id, 1, first.current, seen && file.status === 'ready');
  return html`<span class="thumbnail" ref=${place}>
    ${preview.bitmap ? html`<${Picture} bitmap=${preview.bitmap} />` : html`<${Icon} name="audit" size=${20} />`}
  </span>`;
}

const Turn = ({ name, label, disabled, turn }) => html`
  <button type="button" class="quiet small" aria-label=${label} disabled=${disabled} onClick=${turn}>
    <${Icon} name=${name} size=${14} />
  </button>`;

/** The file that follows in a list; the first one follows the last. */
export const fileAfter = (files, file) => files[(files.findIndex(({ id }) => id === file.id) + 1) % files.length];

const ZOOMS = [1, 1.5, 2, 3, 4];

/** How large and how turned a picture is shown: {zoom, quarters, larger, smaller, turn}. */
function useLook() {
  const [at, setAt] = useState(0);
  const [quarters, setQuarters] = useState(0);
  const step = (by) => setAt((was) => Math.min(ZOOMS.length - 1, Math.max(0, was + by)));
  return {
    zoom: ZOOMS[at], quarters, isLargest: at === ZOOMS.length - 1, isSmallest: at === 0,
    larger: () => step(1), smaller: () => step(-1), turn: () => setQuarters((was) => (was + 1) % 4),
  };
}

/** The buttons that enlarge and turn a picture. */
const LookButtons = ({ look }) => html`
  <${Turn} name="minus" label=${t('files.zoom_out')} disabled=${look.isSmallest} turn=${look.smaller} />
  <span class="num" role="status">${Math.round(look.zoom * 100)} %</span>
  <${Turn} name="plus" label=${t('files.zoom_in')} disabled=${look.isLargest} turn=${look.larger} />
  <${Turn} name="refresh" label=${t('files.rotate')} turn=${look.turn} />`;

/**
 * Shows the pages of a file as pictures, with the original as a download. The keys + and − enlarge, V turns.
 * @param {{file: object, close: () => void, next?: () => void, keys?: Record<string, () => void>}} props
 *   next: shows the next file; keys: actions of the screen behind, by key; they close the viewer
 */
export function FileViewer({ file, close, next, keys = {} }) {
  const [page, setPage] = useState(1);
  const [pages, setPages] = useState(1);
  const look = useLook();
  const shown = Math.min(window.innerWidth, 1300) * (window.devicePixelRatio || 1) * look.zoom;
  const width = shown > 1000 ? LARGEST : 1000; // two sizes, so that enlarging loads at most once more
  const preview = usePreview(file.id, page, width);
  useLayoutEffect(() => { // before the next key, which may close the viewer
    if (preview.pages) setPages(preview.pages);
    if (preview.bitmap) markSeen(file.id);
  }, [preview.bitmap]);
  const turn = (by) => setPage((now) => Math.min(pages, Math.max(1, now + by)));
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === 'ArrowRight' || event.key === 'PageDown') turn(1);
    else if (event.key === 'ArrowLeft' || event.key === 'PageUp') turn(-1);
    else if (event.key === '+') look.larger();
    else if (event.key === '-') look.smaller();
    else if (event.key === 'v') look.turn();
    else if (event.key === 'o' && next) next();
    else if (keys[event.key]) {
      close();
      keys[event.key]();
    } else return;
    event.preventDefault();
  };
  useLayoutEffect(() => {
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
  return html`<${Dialog} title=${file.name} class="viewer" close=${close}>
    <div class="file-view">
      <div class="row">
        <${LookButtons} look=${look} />
        ${pages > 1 && html`
          <${Turn} name="left" label=${t('files.previous')} disabled=${page === 1} turn=${() => turn(-1)} />
          <span class="num" role="status">${t('files.page_of', { page, pages })}</span>
          <${Turn} name="right" label=${t('files.next')} disabled=${page === pages} turn=${() => turn(1)} />`}
        ${next && html`<button type="button" class="quiet small" onClick=${next}>${t('files.next_file')}</button>`}
        <button type="button" class="quiet small end" onClick=${() => {
          downloadFile(`/v1/files/${file.id}/content`, file.name);
          markSeen(file.id);
        }}>
          <${Icon} name="download" size=${14} />${t('files.original')}
        </button>
      </div>
      ${preview.error && html`<${ErrorBox} error=${preview.error} hint=${t('files.download_instead')} />`}
      ${!preview.error && (preview.bitmap
        ? html`<div class="sheet" tabindex="0" role="group" aria-label=${file.name}>
            <${Picture} bitmap=${preview.bitmap} quarters=${look.quarters} zoom=${look.zoom}
              label=${t('files.page_alt', { name: file.name, page })} />
          </div>`
        : html`<${Skeleton} lines=${8} />`)}
      <p class="fine">${t('files.preview_note')}</p>
    </div>
  <//>`;
}

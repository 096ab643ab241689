import { html, useEffect, useId, useLayoutEffect, useRef, useState } from '../lib.js';
import { CALL, mayCall } from '../access.js';
import { api } from '../api.js';
import { foundGroups, joined, localGroups, open } from '../finder.js';
import { parts, words } from '../highlight.js';
import { loadTexts, t, useLanguage } from '../i18n.js';
import { useDebounced } from '../list.js';
import { usePeople } from '../people.js';
import { Dialog } from './dialog.js';
import { toastError } from './feedback.js';
import { Icon } from './icon.js';

const NOTHING = { text: '', groups: [], complete: true };
const MAX_TEXT = 200; // characters that the server accepts

await loadTexts('finder');

/** A text in which the beginnings of the searched words are marked. */
const Marked = ({ text, searched }) => parts(text, searched).map((part) => (part.hit ? html`<mark>${part.text}</mark>` : part.text));

function Row({ row, id, selected, searched, choose, point }) {
  return html`<li id=${id} role="option" aria-selected=${selected} onMouseMove=${point} onClick=${choose}>
    <${Icon} name=${row.icon} size=${16} />
    <span class="palette-words">
      <bdi><${Marked} text=${row.name} searched=${searched} /></bdi>
      ${row.note && html`<bdi class="fine"><${Marked} text=${row.note} searched=${searched} /></bdi>`}
    </span>
  </li>`;
}

/** Searches while the user types. The result belongs to the text that it names. */
function useSearch() {
  const [result, setResult] = useState(NOTHING);
  const latest = useRef('');
  const [, search] = useDebounced('', async (typed) => {
    const text = typed.trim();
    latest.current = text;
    if (!text) return setResult(NOTHING);
    if (!mayCall(CALL.search)) return setResult({ ...NOTHING, text });
    const failed = () => ({ text, groups: [], failed: true });
    const answer = await api.get('/v1/search', { q: text }).then((found) => ({ ...found, text }), failed);
    if (latest.current === text) setResult(answer);
  });
  return [result, search];
}

/** Says that a result is missing, failed, incomplete or empty; otherwise returns an empty text. */
function stateOf(text, result, count) {
  if (result.text !== text) return count ? '' : t('finder.searching');
  if (result.failed) return t('finder.failed');
  if (!result.complete) return t('finder.incomplete');
  return count ? '' : t('finder.nothing', { text });
}

/**
 * Navigates by typing: to records as the server finds them, to screens, and runs commands.
 * @param {{typed: string, close: () => void}} props typed: what was typed before the palette was loaded
 */
export function CommandPalette({ typed: before, close }) {
  usePeople();
  useLanguage();
  const id = useId();
  const [typed, setTyped] = useState(before);
  const [result, search] = useSearch();
  const [at, setAt] = useState(0);
  const list = useRef();
  const text = typed.trim();
  const searched = words(text);
  const groups = joined(localGroups(text), result.text === text ? foundGroups(result) : []);
  const rows = groups.flatMap((group) => group.rows);
  const state = text ? stateOf(text, result, rows.length) : '';
  useEffect(() => before && search(before), []);
  useLayoutEffect(() => setAt(0), [text]); // before Enter, which may follow at once
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at, rows.length]);
  function choose(row) {
    close();
    Promise.resolve(open(row)).catch(toastError);
  }
  function onInput(event) {
    setTyped(event.target.value);
    search(event.target.value);
  }
  function onKeyDown(event) {
    const step = { ArrowDown: 1, ArrowUp: rows.length - 1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      setAt((at + step) % rows.length);
    } else if (event.key === 'Enter' && rows[at]) {
      event.preventDefault();
      choose(rows[at]);
    }
  }
  let n = -1;
  return html`<${Dialog} title=${t('palette.title')} close=${close} class="palette">
    <div class="palette-field">
      <${Icon} name="search" />
      <input role="combobox" autofocus autocomplete="off" spellcheck=${false} maxlength=${MAX_TEXT} aria-label=${t('palette.label')}
        placeholder=${t('palette.label')} aria-autocomplete="list" aria-expanded=${rows.length > 0} aria-controls=${id}
        aria-activedescendant=${rows[at] ? `${id}-${at}` : undefined} value=${typed} onInput=${onInput} onKeyDown=${onKeyDown} />
    </div>
    <div id=${id} ref=${list} role="listbox" aria-label=${t('palette.results')} hidden=${!rows.length}>
      ${groups.map((group, g) => html`<ul key=${group.title} role="group" aria-labelledby=${`${id}-g${g}`}>
        <li role="presentation" class="palette-group" id=${`${id}-g${g}`}>${group.title}</li>
        ${group.rows.map((row) => {
          n++;
          const i = n;
          return html`<${Row} key=${row.id} row=${row} id=${`${id}-${i}`} selected=${i === at} searched=${searched}
            choose=${() => choose(row)} point=${() => i !== at && setAt(i)} />`;
        })}
      </ul>`)}
    </div>
    <p class="none palette-none" role="status" hidden=${!state}>${state}</p>
  <//>`;
}

import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { dayAfter, dayFromToday } from '../dates.js';
import { dayInWords, monthName, weekdays } from '../format.js';
import { t } from '../i18n.js';
import { Icon } from './icon.js';

const STEPS = { ArrowLeft: [-1], ArrowRight: [1], ArrowUp: [-7], ArrowDown: [7], PageUp: [0, -1], PageDown: [0, 1] };
const GAP = 4; // pixels between the field and the calendar

/** The weeks of the month of a day, Monday first, with empty places before its first day. */
function weeksOf(value) {
  const first = `${value.slice(0, 7)}-01`;
  const empty = (new Date(`${first}T00:00Z`).getUTCDay() + 6) % 7;
  const count = Number(dayAfter(dayAfter(first, 0, 1), -1).slice(8));
  const days = [...Array(empty).fill(null), ...Array.from({ length: count }, (_, i) => dayAfter(first, i))];
  return Array.from({ length: Math.ceil(days.length / 7) }, (_, i) => Array.from({ length: 7 }, (__, k) => days[7 * i + k] ?? null));
}

/** Places the calendar below its field, or above it if there is more room. */
function place(panel, field) {
  const at = field.getBoundingClientRect();
  const below = at.bottom + GAP + panel.offsetHeight <= innerHeight || at.top < panel.offsetHeight + GAP;
  const top = below ? Math.min(at.bottom + GAP, innerHeight - panel.offsetHeight - GAP) : at.top - GAP - panel.offsetHeight;
  panel.style.top = `${Math.max(GAP, top)}px`;
  panel.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - panel.offsetWidth - GAP))}px`;
}

/**
 * A month to choose a day from, in the user's language. Arrow keys walk by day and week, Page Up and Page Down by month, with Shift by
 * year; Escape and a click elsewhere close it.
 * @param {{field: HTMLElement, value: string, pick: (day: string) => void, close: () => void}} props
 */
export function Calendar({ field, value, pick, close }) {
  const panel = useRef();
  const [at, setAt] = useState(value || dayFromToday());
  const byKey = useRef(true);
  useLayoutEffect(() => {
    panel.current.showPopover();
    place(panel.current, field);
  }, []);
  useLayoutEffect(() => {
    if (byKey.current) panel.current.querySelector('[tabindex="0"]').focus();
    byKey.current = false;
  }, [at]);
  function onKeyDown(event) {
    const [days, months = 0] = STEPS[event.key] ?? [];
    if (days === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    byKey.current = true;
    setAt(dayAfter(at, days, event.shiftKey ? 12 * months : months));
  }
  const turn = (months, key, icon) => html`<button type="button" class="icon-button" aria-label=${t(key)} title=${t(key)}
    onClick=${() => setAt(dayAfter(at, 0, months))}><${Icon} name=${icon} size=${14} /></button>`;
  const cell = (one) => one && html`<button type="button" class="bare" aria-label=${dayInWords(one)} tabindex=${one === at ? 0 : -1}
    aria-current=${one === dayFromToday() ? 'date' : undefined} aria-pressed=${one === value} onClick=${() => pick(one)}>
    ${Number(one.slice(8))}</button>`;
  return html`<div class="calendar" popover="auto" role="dialog" aria-label=${t('date.choose')} ref=${panel}
    onToggle=${(event) => event.newState === 'closed' && close()}>
    <div class="calendar-head">
      ${turn(-12, 'date.year_before', 'first')}${turn(-1, 'date.month_before', 'left')}
      <strong aria-live="polite">${monthName(at)}</strong>
      ${turn(1, 'date.month_after', 'right')}${turn(12, 'date.year_after', 'last')}
    </div>
    <table onKeyDown=${onKeyDown}>
      <thead><tr>${weekdays().map(([short, long]) => html`<th key=${long} scope="col" abbr=${long}>${short}</th>`)}</tr></thead>
      <tbody>${weeksOf(at).map((week) => html`<tr key=${week.find(Boolean)}>
        ${week.map((one, i) => html`<td key=${i}>${cell(one)}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

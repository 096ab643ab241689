import { html, useEffect, useRef } from '../lib.js';
import { Icon } from './icon.js';

/**
 * The head of a screen. It takes the focus when the screen is entered, so that a keyboard or a screen reader starts there.
 * @param {{title: string, note?: any, back?: [string, string], picture?: any, children?: any}} props back: [path, text]; picture: beside the title; children: the screen's buttons
 */
export function PageHead({ title, note, back, picture, children }) {
  const heading = useRef();
  useEffect(() => {
    document.title = `${title} · Kontor`;
  }, [title]);
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement?.closest('nav')) heading.current?.focus({ preventScroll: true });
  }, []);
  return html`<header class="page-head">
    ${back && html`<a class="back" href=${back[0]}><${Icon} name="left" size=${14} />${back[1]}</a>`}
    <div class="page-title">${picture}<div class="grow"><h1 tabindex="-1" ref=${heading}>${title}</h1>${note && html`<p class="page-note">${note}</p>`}</div>
      ${children && html`<div class="page-actions">${children}</div>`}</div>
  </header>`;
}

/** A part of a screen with its own heading. */
export const Card = ({ title, aside, children, class: name = '' }) => html`<section class=${`card ${name}`}>
  ${title && html`<header><h2>${title}</h2>${aside}</header>`}
  ${children}
</section>`;

/**
 * Views of one record beside each other; each is a link, so that it can be kept and shared.
 * @param {{label: string, tabs: [string, string, any?][], current: string}} props tabs: [path, text, count]
 */
export const Tabs = ({ label, tabs, current }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs.map(([path, text, count]) => html`<a key=${path} href=${path} aria-current=${path === current ? 'page' : undefined}>${text}${count ? html`<span class="count">${count}</span>` : ''}</a>`)}
</nav>`;

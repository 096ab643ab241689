import { html, useEffect, useRef } from '../lib.js';
import { useAddress } from '../address.js';
import { siteName } from '../bank.js';
import { asLeft } from '../router.js';
import { Icon } from './icon.js';

/**
 * The head of a screen. It takes the focus when the screen opens, so that keyboards and screen readers start there.
 * @param {{title: any, plainTitle?: string, note?: any, back?: [string, string], picture?: any, children?: any}} props
 *   plainTitle: the title as text, where it is not; back: [path, text], which leads to the path as the user left it; picture:
 *   beside the title; children: buttons
 */
export function PageHead({ title, plainTitle = title, note, back, picture, children }) {
  const heading = useRef();
  const { path, beside } = useAddress();
  useEffect(() => {
    if (!beside) document.title = `${plainTitle} · ${siteName()}`;
  }, [plainTitle, beside]);
  useEffect(() => {
    const focused = document.activeElement;
    if (focused === document.body || focused?.closest('nav')) heading.current?.focus({ preventScroll: true });
  }, [beside]);
  if (beside) return html`<header class="list-head"><h2><a class="plain" href=${asLeft(path)}>${title}</a></h2></header>`;
  return html`<header class="page-head">
    ${back && html`<a class="back" href=${asLeft(back[0])}><${Icon} name="left" size=${14} />${back[1]}</a>`}
    <div class="page-title">
      ${picture}
      <div class="grow"><h1 tabindex="-1" ref=${heading}>${title}</h1>${note && html`<p class="page-note">${note}</p>`}</div>
      ${children && html`<div class="page-actions">${children}</div>`}
    </div>
  </header>`;
}

/** A section of a screen with its own heading. */
export const Card = ({ title, aside, children, class: name = '' }) => html`<section class=${`card ${name}`}>
  ${title && html`<header><h2>${title}</h2>${aside}</header>`}
  ${children}
</section>`;

/**
 * Links to the views of one record.
 * @param {{label: string, tabs: [string, string, any?][], current: string}} props tabs: [path, text, count]
 */
export const Tabs = ({ label, tabs, current }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs.map(([path, text, count]) => html`<a key=${path} href=${path} aria-current=${path === current ? 'page' : undefined}>
    ${text}${count ? html`<span class="count">${count}</span>` : ''}
  </a>`)}
</nav>`;

import { html } from '../lib.js';
import { t } from '../i18n.js';
import { PageHead, Tabs } from '../ui/page.js';

/** The head of the screens about the caller: their profile, and how they sign in. */
export const ProfileHead = ({ current }) => html`
  <${PageHead} title=${t('nav.profile')} />
  <${Tabs} label=${t('profile.views')} current=${current}
    tabs=${[['/profile', t('nav.profile')], ['/profile/security', t('profile.security')]]} />`;

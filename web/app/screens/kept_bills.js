import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { ago, money } from '../format.js';
import { t } from '../i18n.js';
import { useLoad } from '../load.js';
import { usePreferences } from '../preferences.js';
import { Loaded, toast, toastError } from '../ui/feedback.js';
import { confirm } from '../ui/dialog.js';
import { Icon } from '../ui/icon.js';
import { Card } from '../ui/page.js';
import { Pager } from '../ui/table.js';

const LIMIT = 10;

/** The bills that the user has kept, each with a button that shows it and one that deletes it. Nothing is shown without any. */
export function KeptBills({ show }) {
  usePreferences();
  const [offset, setOffset] = useState(0);
  const load = useLoad(() => api.get('/v1/invoices/bills', { limit: LIMIT, offset }), [offset]);
  if (!load.data?.total) return null;
  async function forget(bill) {
    const title = t('invoices.forget');
    if (!(await confirm({ title, text: t('invoices.forget_text', { name: bill.qr_info.creditor.name }), action: title }))) return;
    try {
      await api.delete(`/v1/invoices/bills/${bill.id}`);
      load.reload();
      toast(t('saved'));
    } catch (error) {
      toastError(error);
    }
  }
  const amount = ({ amount: value, currency }) => (value === null ? '' : money(value, currency));
  return html`<${Card} title=${t('invoices.kept')}>
    <${Loaded} load=${load}>${({ data, total }) => html`
      <ul class="items">${data.map((bill) => html`<li key=${bill.id}>
        <span class="grow two-lines">
          <button class="link" onClick=${() => show(bill.qr_info)}>${bill.qr_info.creditor.name || bill.qr_info.iban}</button>
          <span>${[ago(bill.read_at), bill.qr_info.message].filter(Boolean).join(' · ')}</span>
        </span>
        <span class="num">${amount(bill.qr_info)}</span>
        <button class="bare" aria-label=${t('invoices.forget_one', { name: bill.qr_info.creditor.name })} onClick=${() => forget(bill)}>
          <${Icon} name="trash" size=${16} />
        </button>
      </li>`)}</ul>
      ${total > LIMIT && html`<${Pager} offset=${offset} limit=${LIMIT} total=${total} onMove=${setOffset} />`}`}<//>
  <//>`;
}

import { html, useState } from '../lib.js';
import { may } from '../access.js';
import { loadTexts, t } from '../i18n.js';
import { toastError } from './feedback.js';
import { Icon } from './icon.js';

/**
 * A button that shows who may see, change or delete a record, for callers who may read all grants or the audit trail.
 * @param {{type: string, id: string}} props type: of the record, as permissions name it
 */
export function WhoSees({ type, id }) {
  const [view, setView] = useState(null);
  if (!may('grants', 'read_all') && !may('audit', 'read')) return null;
  const open = () => Promise.all([import('../screens/admin/who_sees_dialog.js'), loadTexts('admin')])
    .then(([module]) => setView({ show: module.default }), toastError);
  return html`<button class="quiet" onClick=${open}><${Icon} name="roles" size=${16} />${t('access.who_sees')}</button>
    ${view && html`<${view.show} type=${type} id=${id} close=${() => setView(null)} />`}`;
}

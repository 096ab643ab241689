import { html, useState } from '../lib.js';
import { may } from '../access.js';
import { loadTexts, t } from '../i18n.js';
import { toastError } from './feedback.js';
import { Icon } from './icon.js';

/**
 * A button that shows who may see, change or delete a record, for callers who may read all grants or the audit trail.
 * @param {{type: string, id: string, compact?: boolean}} props type: of the record, as permissions name it; compact: an icon
 */
export function WhoSees({ type, id, compact }) {
  const [view, setView] = useState(null);
  if (!may('grants', 'read_all') && !may('audit', 'read')) return null;
  const open = () => Promise.all([import('../screens/admin/who_sees_dialog.js'), loadTexts('admin')])
    .then(([module]) => setView({ show: module.default }), toastError);
  const label = t('access.who_sees');
  return html`<button class=${compact ? 'icon-button' : 'quiet'} aria-label=${label} title=${compact && label} onClick=${open}>
      <${Icon} name="roles" size=${16} />${!compact && label}
    </button>
    ${view && html`<${view.show} type=${type} id=${id} close=${() => setView(null)} />`}`;
}

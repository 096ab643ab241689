import { html, useId, useRef, useState } from '../../lib.js';
import { api } from '../../api.js';
import { verifyExport } from '../../audit_proof.js';
import { exactTime, number } from '../../format.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { usePreferences } from '../../preferences.js';
import { Facts } from '../../ui/display.js';
import { Loaded, Notice, useAction } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';

const MAX_MB = 128;

/** Examines a file: {report, live, file}, or {problem, file}. live is the entry of the server that the file ends with. */
async function examine(file, keys) {
  if (file.size > MAX_MB * 1e6) return { file, problem: { reason: 'size', values: { mb: MAX_MB } } };
  try {
    const report = await verifyExport(await file.text(), keys);
    const { data } = await api.get('/v1/audit', { 'search.seq': report.to, limit: 1 });
    return { file, report, live: data[0] };
  } catch (problem) {
    if (!problem.reason) throw problem;
    return { file, problem };
  }
}

function Proven({ report, live, entries, file }) {
  const { from, to, first, last } = report;
  const values = { from: number(from), to: number(to), count: number(to - from + 1), at: exactTime(report.signedAt) };
  const isSame = live?.hash === last.hash;
  return html`<div class="stack proof">
    <${Notice} tone="good" title=${t('audit_proof.good')}>${t('audit_proof.good_text', values)}<//>
    <${Notice} tone=${isSame ? 'good' : 'bad'} title=${t(isSame ? 'audit_proof.same' : 'audit_proof.other')}>
      ${t(isSame ? 'audit_proof.same_text' : 'audit_proof.other_text', { ...values, total: number(entries) })}<//>
    <${Card} title=${file.name}><${Facts} list rows=${[
      [t('audit_proof.entries'), `${values.from}–${values.to}`],
      [t('audit_proof.first_at'), exactTime(first.at)], [t('audit_proof.last_at'), exactTime(last.at)],
      [t('audit_proof.signed_at'), values.at], [t('audit_proof.signatures'), number(report.heads)],
      [t('audit_proof.key'), html`<span class="code">${report.key}</span>`],
    ]} /><p class="fine">${t('audit_proof.limits', values)}</p><//>
  </div>`;
}

const NotProven = ({ problem, file }) => html`<${Notice} tone="bad" title=${t('audit_proof.bad', { file: file.name })}>
  ${t(`audit_proof.${problem.reason}`, { line: number(problem.line ?? 0), ...problem.values })}<//>`;

function Form({ status }) {
  const [id, keysId] = [useId(), useId()];
  const input = useRef();
  const [keys, setKeys] = useState(status.export_keys.join('\n'));
  const [result, setResult] = useState(null);
  const verify = useAction(async () => {
    setResult(null);
    setResult(await examine(input.current.files[0], keys.split(/\s+/).filter(Boolean)));
  });
  const onChange = () => input.current.files[0] && verify.run();
  return html`<div class="stack">
    <${Card} title=${t('audit_proof.file')}>
      <div class="field"><label for=${id}>${t('audit_proof.choose')}</label>
        <input id=${id} ref=${input} type="file" accept=".jsonl" disabled=${verify.busy} onChange=${onChange} /></div>
      <div class="field"><label for=${keysId}>${t('audit_proof.keys')}</label>
        <textarea id=${keysId} rows="2" spellcheck=${false} aria-describedby=${`${keysId}-hint`} value=${keys}
          onInput=${(event) => setKeys(event.target.value)} onChange=${onChange}></textarea>
        <small id=${`${keysId}-hint`}>${t('audit_proof.keys_hint')}</small></div>
    <//>
    <div aria-live="polite">
      ${verify.busy && html`<progress aria-label=${t('loading')}></progress>`}
      ${result?.report && html`<${Proven} ...${result} entries=${status.entries} />`}
      ${result?.problem && html`<${NotProven} ...${result} />`}
    </div>
  </div>`;
}

/** Verifies a signed export of the audit trail in the browser, and says what is proven. */
export default function AuditVerify() {
  usePreferences();
  const load = useLoad(() => api.get('/v1/audit/status'));
  return html`
    <${PageHead} title=${t('audit_proof.title')} note=${t('audit_proof.note')} back=${['/admin/audit', t('nav.audit')]} />
    <${Loaded} load=${load} lines=${4}>${(status) => html`<${Form} status=${status} />`}<//>`;
}

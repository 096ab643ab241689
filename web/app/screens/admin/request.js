import { html } from '../../lib.js';
import { api } from '../../api.js';
import { t } from '../../i18n.js';
import { useLoad } from '../../load.js';
import { Badge, Copy, Facts, RecordId } from '../../ui/display.js';
import { Loaded } from '../../ui/feedback.js';
import { Card, PageHead } from '../../ui/page.js';
import { Caller, duration, Moment, Status } from './request_parts.js';

const factsOf = (request) => [
  [t('requests.at'), html`<${Moment} at=${request.at} exact />`],
  [t('requests.status'), html`<${Status} request=${request} />`],
  request.code && [t('requests.code'), html`<a class="code" href=${`/admin/requests?code=${request.code}`}>${request.code}</a>`],
  request.reason && [t('requests.reason'), html`<span class="code">${request.reason}</span>`],
  request.fields.length > 0 && [t('requests.fields'), html`<span class="code">${request.fields.join(', ')}</span>`],
  [t('requests.duration'), duration(request.microseconds)],
  [t('requests.endpoint'), request.endpoint ? html`<span class="code">${request.endpoint}</span>` : t('requests.no_endpoint')],
  [t('requests.path'), html`<span class="code">${request.path}</span>`],
  request.query && [t('requests.query'), html`<span class="code">${request.query.replaceAll('&', ', ')}</span>`],
  request.ignored && [t('requests.ignored'), html`<span class="code">${request.ignored}</span>`],
  [t('requests.caller'), html`<${Caller} request=${request} link />`],
  [t('requests.request_id'), html`<${RecordId} id=${request.request_id} />`],
  [t('requests.node'), request.node],
];

const Why = ({ checks }) => html`<${Card} title=${t('requests.why')}>
  <ol class="checks">${checks.map(({ check, passed, text }) => html`<li key=${check}>
    <${Badge} value=${t(passed ? 'requests.passed' : 'requests.failed')} tone=${passed ? 'good' : 'bad'} />
    <strong>${t(`requests.check.${check}`)}</strong><span>${text}</span>
  </li>`)}</ol>
<//>`;

/** JSON with line breaks; a text that was cut stays as it is. */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const Body = ({ title, text }) => text && html`<${Card} title=${title}><pre tabindex="0">${readable(text)}</pre><//>`;

/** One request: what it was, why it was refused, and how to repeat it. */
export default function Request({ seq }) {
  const load = useLoad(() => api.get(`/v1/requests/${seq}`), [seq]);
  const title = load.data ? load.data.endpoint || `${load.data.method} ${load.data.path}` : t('requests.request');
  return html`
    <${PageHead} title=${title} back=${['/admin/requests', t('nav.requests')]}>${load.data?.caller && html`
      <a class="button quiet" href=${`/admin/requests?caller=${load.data.caller}`}>${t('requests.of_caller')}</a>`}<//>
    <${Loaded} load=${load} lines=${10}>${(request) => html`<div class="stack">
      ${request.why.length > 0 && html`<${Why} checks=${request.why} />`}
      <${Card} title=${t('requests.request')}><${Facts} list rows=${factsOf(request)} /><//>
      <${Card} title=${t('requests.curl')} aside=${html`<${Copy} text=${request.curl} label=${t('requests.copy')} />`}>
        <pre tabindex="0" class="command">${request.curl}</pre><p class="fine">${t('requests.curl_note')}</p>
      <//>
      <${Body} title=${t('requests.request_body')} text=${request.request_body} />
      <${Body} title=${t('requests.response_body')} text=${request.response_body} />
    </div>`}<//>`;
}

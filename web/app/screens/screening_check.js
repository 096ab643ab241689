import { html, useState } from '../lib.js';
import { api } from '../api.js';
import { country } from '../countries.js';
import { date, number, percent } from '../format.js';
import { t, term } from '../i18n.js';
import { Compare, MarkedName } from '../ui/compare.js';
import { DateField } from '../ui/date_field.js';
import { Empty, Notice } from '../ui/feedback.js';
import { CountryField } from '../ui/country.js';
import { Actions, Field, Form, useForm } from '../ui/form.js';
import { Card } from '../ui/page.js';

const BLANK = { name: '', type: '', date_of_birth: '', country: '', threshold: '70' };
const TYPES = ['individual', 'business'];
const THRESHOLDS = ['60', '65', '70', '75', '80', '85', '90'];

function Match({ query, match }) {
  const parts = match.matched.map((part) => [part.query, part.entry]);
  const countries = match.countries.map(country).join(', ');
  return html`<section class="candidate" aria-label=${match.name}>
    <p class="row"><strong><bdi>${match.name}</bdi></strong>
      <span class="num">${t('screening.alike', { n: percent(match.score, 1) })}</span></p>
    <${Compare} caption=${match.name} heads=${[t('screening.searched'), match.list]} rows=${[
      [t('field.name'), html`<${MarkedName} name=${query.name} parts=${parts} />`,
        html`<${MarkedName} name=${match.name} parts=${parts.map(([own, other]) => [other, own])} />`],
      [t('field.type'), query.type && term('customer_type', query.type), match.type && term('customer_type', match.type)],
      [t('field.date_of_birth'), date(query.date_of_birth), match.date_of_birth],
      [t('field.country'), country(query.country), countries],
      [t('screening.programs'), '', match.programs.join(', ')],
      [t('screening.source_id'), '', match.source_id],
    ]} />
  </section>`;
}

function Result({ query, matches, doubt, lists }) {
  if (!lists.length) {
    return html`<${Notice} tone="warn" title=${t('screening.none')}>${t('screening.nothing_compared')}<//>`;
  }
  const label = ({ name, version, entries }) => `${[name, version].filter(Boolean).join(' ')} (${number(entries)})`;
  const searched = lists.map(label).join(', ');
  return html`<${Card} title=${t('screening.matches', { n: matches.length })}>
    ${doubt && html`<${Notice} tone="warn" title=${t(`screening.doubt.${doubt}`)}>${t('screening.doubt_text')}<//>`}
    ${matches.length
      ? html`<div class="stack">${matches.map((one) => html`<${Match} key=${one.entry_id} query=${query} match=${one} />`)}</div>`
      : html`<${Empty} icon="check" title=${t('screening.no_match')} />`}
    <p class="fine">${t('screening.searched_lists', { lists: searched })}</p>
  <//>`;
}

/** Compares a name with the lists. */
export function ScreeningCheck() {
  const [result, setResult] = useState(null);
  const form = useForm(BLANK, async ({ threshold, ...values }) => {
    const query = Object.fromEntries(Object.entries(values).filter(([, value]) => value));
    setResult({ query, ...(await api.post('/v1/screening/check', { ...query, threshold: Number(threshold) / 100 })) });
  }, undefined, Object.keys(BLANK));
  return html`<div class="stack">
    <${Card} title=${t('screening.check')}>
      <${Form} form=${form}>
        <div class="fields">
          <${Field} class="wide" form=${form} name="name" label=${t('field.name')} required maxlength="500" autocomplete="off" />
          <${Field} form=${form} name="type" label=${t('field.type')}
            options=${[['', t('screening.any_type')], ...TYPES.map((value) => [value, term('customer_type', value)])]} />
          <${DateField} form=${form} name="date_of_birth" label=${t('field.date_of_birth')} optional />
          <${CountryField} form=${form} name="country" label=${t('field.country')} optional />
          <${Field} form=${form} name="threshold" label=${t('screening.threshold')} hint=${t('screening.threshold_hint')}
            options=${THRESHOLDS.map((value) => [value, `${value} %`])} />
        </div>
        <${Actions} form=${form} label=${t('screening.do_check')} />
      <//>
    <//>
    ${result && html`<div aria-live="polite"><${Result} ...${result} /></div>`}
  </div>`;
}

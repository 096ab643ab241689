import { useEffect } from '../lib.js';
import { t } from '../i18n.js';

/**
 * Says in a form that another person has changed the record meanwhile, and offers the newer values. The form keeps what the user has
 * typed: loading the newer values changes only fields that they have not touched, and shows both values of the others.
 * @param {ReturnType<import('../ui/form.js').useForm>} form
 * @param {ReturnType<import('../ui/form.js').useEditedRecord>} edited
 * @param {string} [etag] of the record as the screen below the form shows it now
 */
export function useNewerRecord(form, edited, etag) {
  useEffect(() => {
    if (!etag || etag === edited.match.ifMatch || form.busy) return;
    form.setProblem({ status: 412, message: t('conflict.newer') });
  }, [etag]);
}

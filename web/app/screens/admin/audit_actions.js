import { t, term } from '../../i18n.js';

// The first part of an action is its subject, the last part its verb: customers.create. Some have a text of their own.
const VERBS = ['create', 'update', 'delete', 'read', 'add', 'remove', 'archive', 'restore', 'activate', 'disable', 'revoke', 'message',
  'link', 'unlink'];

const AREAS = { auth: 'sessions', rbac: 'grants', kyc: 'customers', api_keys: 'api_keys', service_accounts: 'service_accounts' };

/** An action of the audit trail in words. */
export function actionName(action) {
  const own = `audit_action.${action}`;
  if (t(own) !== own) return t(own);
  const parts = action.split('.');
  const verb = parts.at(-1);
  const area = term('rec_type', AREAS[parts[0]] ?? (parts.length > 2 ? parts[1] : parts[0]));
  return t('audit.action_of', { area, what: VERBS.includes(verb) ? t(`audit_verb.${verb}`) : verb.replaceAll('_', ' ') });
}

/** The actions with texts that contain what was typed, for the search of the list; empty if there is none. */
export function actionsNamed(typed) {
  const text = typed.trim().toLocaleLowerCase();
  return text && ACTIONS.filter((action) => actionName(action).toLocaleLowerCase().includes(text)).join(',');
}

/** The actions that the search by words finds. */
const ACTIONS = [
  'access.denied', 'access.throttled', 'api_keys.create', 'api_keys.refused', 'api_keys.revoke', 'audit.changed_fields', 'audit.export',
  'audit.events_dropped', 'audit.form', 'auth.cooling_off', 'auth.factor_failed', 'auth.method_restored', 'auth.method_undone',
  'auth.password_set', 'auth.refresh_refused', 'auth.session_ended', 'auth.session_limit', 'auth.session_opened',
  'auth.session_opened_by_link', 'auth.sign_in_failed', 'chats.create', 'chats.message', 'chats.read', 'chats.read_of_others',
  'credentials.create', 'credentials.delete', 'credentials.validate', 'customers.create', 'customers.kyc_change', 'customers.kyc_confirm',
  'customers.kyc_decide', 'customers.kyc_decision', 'customers.kyc_decision_changed', 'customers.kyc_decision_confirmed',
  'customers.kyc_document', 'customers.kyc_expire', 'customers.kyc_read', 'customers.kyc_submit', 'customers.notify', 'customers.update',
  'files.delete', 'files.preview', 'files.upload', 'invoices.keep', 'lists.export', 'notifications.outbox_read', 'notifications.read',
  'notifications.read_record', 'payers.create', 'payers.update', 'personas.accept_user', 'personas.add_user', 'personas.create',
  'personas.remove_user', 'personas.update', 'privacy.erasure_begun', 'privacy.hold', 'privacy.hold_removed', 'privacy.relationship',
  'profile.remove_view', 'profile.save_view', 'rbac.grants.create', 'rbac.grants.delete', 'rbac.rate_limits.set', 'rbac.reviews.keep',
  'rbac.reviews.remove', 'rbac.roles.create', 'rbac.roles.delete', 'rbac.roles.permissions', 'rbac.seed', 'requests.read',
  'service_tokens.refused', 'signing_keys.create', 'tasks.assignees.add', 'tasks.assignees.remove', 'tasks.assignees.update',
  'tasks.create', 'tasks.delete', 'tasks.remind', 'tasks.status', 'tasks.update', 'user_roles.change', 'users.create', 'users.invite',
  'users.invite_accept', 'users.invite_again', 'users.invite_withdraw', 'users.otp_refused', 'users.password',
  'users.recovery_completed', 'users.recovery_started', 'users.roles', 'users.update',
];

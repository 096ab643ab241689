package apierr

import (
	"net/http"
	"slices"
)

// The catalogue. Codes are part of the API: add and retire them, but never rename or reuse them.
var (
	// Common to all routes.
	InvalidInput         = kind("common.invalid_input", http.StatusBadRequest)
	Unauthorized         = kind("common.unauthorized", http.StatusUnauthorized)
	NoAccess             = kind("common.rbac_no_rec_access", http.StatusForbidden)
	NotFound             = kind("common.not_found", http.StatusNotFound)
	MethodNotAllowed     = kind("common.method_not_allowed", http.StatusMethodNotAllowed)
	PreconditionFailed   = kind("common.precondition_failed", http.StatusPreconditionFailed)
	PayloadTooLarge      = kind("common.payload_too_large", http.StatusRequestEntityTooLarge)
	UnsupportedMediaType = kind("common.unsupported_media_type", http.StatusUnsupportedMediaType)
	IdempotencyMismatch  = kind("common.idempotency_mismatch", http.StatusUnprocessableEntity)
	HeadersTooLarge      = kind("common.headers_too_large", http.StatusRequestHeaderFieldsTooLarge)
	MalformedRequest     = kind("common.malformed_request", http.StatusBadRequest)
	RequestTimeout       = kind("common.request_timeout", http.StatusRequestTimeout)
	ServerError          = kind("common.server_error", http.StatusInternalServerError)
	DatabaseError        = kind("common.database_error", http.StatusInternalServerError)
	Unavailable          = kind("common.unavailable", http.StatusServiceUnavailable)
	Starting             = kind("common.starting", http.StatusServiceUnavailable)
	DeadlineExceeded     = kind("common.deadline_exceeded", http.StatusServiceUnavailable)
	OutcomeUnknown       = kind("common.outcome_unknown", http.StatusServiceUnavailable)
	AnswerTooLarge       = kind("common.answer_too_large", http.StatusInternalServerError)
	QuotaExceeded        = kind("common.quota_exceeded", http.StatusConflict)

	// Rate limits.
	RateLimited   = kind("rate_limits_m.exceeded", http.StatusTooManyRequests)
	TooManyAtOnce = kind("rate_limits_m.too_many_at_once", http.StatusTooManyRequests)

	// The shared query layer.
	QueryInvalidField       = kind("query_m.invalid_field", http.StatusBadRequest)
	QueryInvalidFormat      = kind("query_m.invalid_format", http.StatusBadRequest)
	QueryInvalidSortField   = kind("query_m.invalid_sort_field", http.StatusBadRequest)
	QueryInvalidSearchField = kind("query_m.invalid_search_field", http.StatusInternalServerError)

	// Sign-in, sessions, API keys.
	InvalidCredentials = kind("auth_m.invalid_credentials", http.StatusUnauthorized)
	LockedOut          = kind("auth_m.cooling_off", http.StatusTooManyRequests)
	AuthUnavailable    = kind("auth_m.internal_server_error", http.StatusServiceUnavailable)
	SessionNotFound    = kind("auth_m.session_not_found", http.StatusNotFound)
	APIKeyNotFound     = kind("auth_m.api_key_not_found", http.StatusNotFound)
	InvalidRefresh     = kind("auth_m.invalid_refresh_token", http.StatusUnauthorized)
	StaleSession       = kind("auth_m.insufficient_user_authentication", http.StatusUnauthorized)
	InvalidFactor      = kind("auth_m.invalid_factor", http.StatusUnauthorized)
	ChallengeExpired   = kind("auth_m.challenge_expired", http.StatusUnauthorized)
	FactorRequired     = kind("auth_m.factor_required", http.StatusForbidden)
	ProofRequired      = kind("auth_m.proof_required", http.StatusForbidden)
	MethodOnTrial      = kind("auth_m.method_on_trial", http.StatusForbidden)
	OlderMethodKept    = kind("auth_m.older_method_kept", http.StatusConflict)
	UndoInvalid        = kind("auth_m.undo_invalid", http.StatusNotFound)

	// Service accounts and their tokens.
	ServiceAccountNotFound = kind("service_accounts.account_not_found", http.StatusNotFound)
	ServiceAccountDisabled = kind("service_accounts.account_disabled", http.StatusConflict)
	ServiceTokenNotFound   = kind("service_accounts.token_not_found", http.StatusNotFound)
	TooManyServiceTokens   = kind("service_accounts.too_many_tokens", http.StatusConflict)
	PersonRequired         = kind("service_accounts.person_required", http.StatusForbidden)

	// The change feed and webhooks.
	CursorExpired      = kind("events.cursor_expired", http.StatusGone)
	WebhookNotFound    = kind("webhooks.webhook_not_found", http.StatusNotFound)
	WebhookDelivery    = kind("webhooks.delivery_not_found", http.StatusNotFound)
	TooManyWebhooks    = kind("webhooks.too_many_webhooks", http.StatusConflict)
	WebhookNotFinished = kind("webhooks.delivery_not_finished", http.StatusConflict)

	// Sign-in with the operator's provider. The first five reach the console as codes in the fragment of its address.
	OIDCUnavailable = kind("auth_m.oidc_unavailable", http.StatusServiceUnavailable)
	OIDCExpired     = kind("auth_m.oidc_expired", http.StatusBadRequest)
	OIDCCancelled   = kind("auth_m.oidc_cancelled", http.StatusUnauthorized)
	OIDCFailed      = kind("auth_m.oidc_failed", http.StatusUnauthorized)
	OIDCNoAccount   = kind("auth_m.oidc_no_account", http.StatusForbidden)
	OIDCInvalidCode = kind("auth_m.oidc_invalid_code", http.StatusUnauthorized)

	// Users and credentials.
	UserNotFound        = kind("users.user_not_found", http.StatusNotFound)
	ServiceAccount      = kind("users.service_account", http.StatusConflict)
	InvitationNotFound  = kind("users.invitation_not_found", http.StatusNotFound)
	InvitationInvalid   = kind("users.invitation_invalid", http.StatusNotFound)
	CredentialNotFound  = kind("users.credential_not_found", http.StatusNotFound)
	CredentialExists    = kind("users.credential_exists", http.StatusConflict)
	LastCredential      = kind("users.last_credential", http.StatusConflict)
	CredentialValidated = kind("users.credential_validated", http.StatusConflict)
	InvalidOTP          = kind("users.invalid_otp", http.StatusBadRequest)
	OTPExpired          = kind("users.otp_expired", http.StatusBadRequest)
	OTPAttemptsExceeded = kind("users.otp_attempts_exceeded", http.StatusTooManyRequests)
	OTPSendLimited      = kind("users.otp_send_limited", http.StatusTooManyRequests)
	LastAdministrator   = kind("users.last_administrator", http.StatusConflict)
	TooManyCredentials  = kind("users.too_many_credentials", http.StatusConflict)
	CredentialTooNew    = kind("users.credential_too_new", http.StatusConflict)
	IdentityNotFound    = kind("users.identity_not_found", http.StatusNotFound)
	IdentityExists      = kind("users.identity_exists", http.StatusConflict)
	TooManyIdentities   = kind("users.too_many_identities", http.StatusConflict)
	NotStaff            = kind("users.not_staff", http.StatusConflict)
	DisplayNameReserved = kind("users.display_name_reserved", http.StatusConflict)

	// Second factors.
	FactorNotFound      = kind("factors.factor_not_found", http.StatusNotFound)
	FactorNameExists    = kind("factors.name_exists", http.StatusConflict)
	TooManyFactors      = kind("factors.too_many", http.StatusConflict)
	FactorActive        = kind("factors.already_active", http.StatusConflict)
	EnrolmentOver       = kind("factors.enrolment_over", http.StatusConflict)
	PasskeyExists       = kind("factors.passkey_exists", http.StatusConflict)
	PasskeysUnavailable = kind("factors.passkeys_unavailable", http.StatusConflict)
	NoSecondFactor      = kind("factors.no_second_factor", http.StatusConflict)

	// Access control.
	RoleNotFound   = kind("rbac.role_not_found", http.StatusNotFound)
	RoleExists     = kind("rbac.role_exists", http.StatusConflict)
	RoleBuiltIn    = kind("rbac.role_built_in", http.StatusConflict)
	RoleInSettings = kind("rbac.role_in_settings", http.StatusForbidden)
	GrantNotFound  = kind("rbac.grant_not_found", http.StatusNotFound)

	RecordTypeNotFound = kind("rbac.record_type_not_found", http.StatusNotFound)
	RecordTypeExists   = kind("rbac.record_type_exists", http.StatusConflict)
	RecordTypeBuiltIn  = kind("rbac.record_type_built_in", http.StatusConflict)
	RecordTypeInUse    = kind("rbac.record_type_in_use", http.StatusConflict)

	GrantExists      = kind("rbac.grant_exists", http.StatusConflict)
	GrantNotHeld     = kind("rbac.grant_not_held", http.StatusForbidden)
	GrantToSelf      = kind("rbac.grant_to_self", http.StatusForbidden)
	RightsNotHeld    = kind("rbac.rights_not_held", http.StatusForbidden)
	EndpointNotFound = kind("rbac.endpoint_not_found", http.StatusNotFound)
	RecordNotFound   = kind("rbac.record_not_found", http.StatusNotFound)
	FixedPermissions = kind("rbac.fixed_permissions", http.StatusConflict)

	// Customers.
	CustomerNotFound     = kind("customers.customer_not_found", http.StatusNotFound)
	MembersMissing       = kind("customers.members_missing", http.StatusConflict)
	InvalidKYCTransition = kind("customers.invalid_kyc_transition", http.StatusConflict)
	SelfVerification     = kind("customers.self_verification", http.StatusForbidden)
	SecondPersonRequired = kind("customers.second_person_required", http.StatusForbidden)
	DecisionNotFound     = kind("customers.decision_not_found", http.StatusNotFound)
	DecisionNotPending   = kind("customers.decision_not_pending", http.StatusConflict)
	DecisionWaits        = kind("customers.decision_waits", http.StatusConflict)
	DecisionOutdated     = kind("customers.decision_outdated", http.StatusConflict)
	ScreeningOpen        = kind("customers.screening_open", http.StatusConflict)

	// Imports.
	ImportNotFound   = kind("imports.import_not_found", http.StatusNotFound)
	ImportUnfinished = kind("imports.import_unfinished", http.StatusConflict)

	// Personas.
	PersonaNotFound     = kind("personas.persona_not_found", http.StatusNotFound)
	OwnPersona          = kind("personas.own_persona", http.StatusForbidden)
	PersonaUserNotFound = kind("personas.user_link_not_found", http.StatusNotFound)
	PersonaUserExists   = kind("personas.user_link_exists", http.StatusConflict)
	PersonaLinkNotFound = kind("personas.link_not_found", http.StatusNotFound)
	PersonaLinkExists   = kind("personas.link_exists", http.StatusConflict)

	// Payers.
	PayerNotFound = kind("payers.payer_not_found", http.StatusNotFound)

	// Chats.
	ChatNotFound            = kind("chats.chat_not_found", http.StatusNotFound)
	ChatParticipantNotFound = kind("chats.participant_not_found", http.StatusNotFound)
	ChatParticipantExists   = kind("chats.participant_exists", http.StatusConflict)
	ChatFixedParticipants   = kind("chats.fixed_participants", http.StatusConflict)
	ThreadNotFound          = kind("chats.thread_not_found", http.StatusNotFound)
	ChatFull                = kind("chats.too_many_participants", http.StatusConflict)

	// Tasks.
	TaskNotFound          = kind("tasks.task_not_found", http.StatusNotFound)
	TaskInvalidTransition = kind("tasks.invalid_transition", http.StatusConflict)
	TaskAssigneeNotFound  = kind("tasks.assignee_not_found", http.StatusNotFound)
	TaskAssigneeExists    = kind("tasks.assignee_exists", http.StatusConflict)

	// The audit trail.
	AuditEntryNotFound = kind("audit.entry_not_found", http.StatusNotFound)

	// Personal data.
	RecordErased     = kind("privacy.record_erased", http.StatusConflict)
	ErasureNotFound  = kind("privacy.erasure_not_found", http.StatusNotFound)
	HoldNotFound     = kind("privacy.hold_not_found", http.StatusNotFound)
	Retained         = kind("privacy.retained", http.StatusConflict)
	RelationshipOpen = kind("privacy.relationship_open", http.StatusConflict)
	OnHold           = kind("privacy.on_hold", http.StatusConflict)
	HasCustomers     = kind("privacy.has_customers", http.StatusConflict)
	SelfErasure      = kind("privacy.self_erasure", http.StatusConflict)

	// Profile.
	InvalidFileType = kind("profile.invalid_file_type", http.StatusBadRequest)
	InvalidImage    = kind("profile.invalid_image", http.StatusBadRequest)
	AvatarNotFound  = kind("profile.avatar_not_found", http.StatusNotFound)
	ViewNotFound    = kind("profile.view_not_found", http.StatusNotFound)
	TooManyViews    = kind("profile.too_many_views", http.StatusConflict)

	// Files.
	FileNotFound       = kind("files.file_not_found", http.StatusNotFound)
	FileRecordNotFound = kind("files.record_not_found", http.StatusNotFound)
	FileType           = kind("files.invalid_file_type", http.StatusUnsupportedMediaType)
	FileInvalid        = kind("files.invalid_file", http.StatusBadRequest)
	FileBeingChecked   = kind("files.being_checked", http.StatusConflict)
	FileInfected       = kind("files.infected", http.StatusConflict)
	FileLocked         = kind("files.evidence_locked", http.StatusConflict)
	TooManyFiles       = kind("files.too_many_files", http.StatusConflict)
	PreviewImpossible  = kind("files.no_preview", http.StatusConflict)
	PageNotFound       = kind("files.page_not_found", http.StatusNotFound)
	RangeBeyondEnd     = kind("files.range_not_satisfiable", http.StatusRequestedRangeNotSatisfiable)

	// Screening.
	ScreeningListNotFound = kind("screening.list_not_found", http.StatusNotFound)
	ScreeningTooMany      = kind("screening.too_many_lists", http.StatusConflict)
	RequestNotFound       = kind("requests.request_not_found", http.StatusNotFound)
	ScreeningReplaced     = kind("screening.load_replaced", http.StatusConflict)

	ScreeningHitNotFound   = kind("screening.hit_not_found", http.StatusNotFound)
	ScreeningHitNotOpen    = kind("screening.hit_not_open", http.StatusConflict)
	ScreeningDecisionWaits = kind("screening.decision_waits", http.StatusConflict)

	// Notifications.
	NotificationNotFound = kind("notifications.notification_not_found", http.StatusNotFound)
	DeliveryNotFound     = kind("notifications.delivery_not_found", http.StatusNotFound)
	DeliveryNotDead      = kind("notifications.delivery_not_dead", http.StatusConflict)
	TooManyStreams       = kind("notifications.too_many_connections", http.StatusTooManyRequests)

	// The sandbox.
	ClockBack = kind("sandbox.clock_back", http.StatusConflict)
	ClockBusy = kind("sandbox.clock_busy", http.StatusConflict)
	// Seed files and scenarios of the sandbox.
	SandboxBusy = kind("sandbox.busy", http.StatusConflict)
	StepFailed  = kind("sandbox.step_failed", http.StatusUnprocessableEntity)

	// Invoices. The code has no module, as the specification shows it.
	InvoiceInvalid = kind("invalid_input", http.StatusBadRequest)
	BillNotFound   = kind("invoices.bill_not_found", http.StatusNotFound)
)

var catalogue []Kind

// kind adds an error to the catalogue.
func kind(code string, status int) Kind {
	k := Kind{code, status}
	catalogue = append(catalogue, k)
	return k
}

// All returns the catalogue.
func All() []Kind { return slices.Clone(catalogue) }

package fault

import "net/http"

// The catalogue. A code is a promise: add and retire, never rename, never reuse.
var (
	// Common to all routes.
	InvalidInput         = Kind{"common.invalid_input", http.StatusBadRequest}
	Unauthorized         = Kind{"common.unauthorized", http.StatusUnauthorized}
	NoAccess             = Kind{"common.rbac_no_rec_access", http.StatusForbidden}
	OriginRefused        = Kind{"common.origin_not_allowed", http.StatusForbidden}
	NotFound             = Kind{"common.not_found", http.StatusNotFound}
	MethodNotAllowed     = Kind{"common.method_not_allowed", http.StatusMethodNotAllowed}
	PreconditionFailed   = Kind{"common.precondition_failed", http.StatusPreconditionFailed}
	PayloadTooLarge      = Kind{"common.payload_too_large", http.StatusRequestEntityTooLarge}
	UnsupportedMediaType = Kind{"common.unsupported_media_type", http.StatusUnsupportedMediaType}
	IdempotencyMismatch  = Kind{"common.idempotency_mismatch", http.StatusUnprocessableEntity}
	HeadersTooLarge      = Kind{"common.headers_too_large", http.StatusRequestHeaderFieldsTooLarge}
	MalformedRequest     = Kind{"common.malformed_request", http.StatusBadRequest}
	RequestTimeout       = Kind{"common.request_timeout", http.StatusRequestTimeout}
	ServerError          = Kind{"common.server_error", http.StatusInternalServerError}
	DatabaseError        = Kind{"common.database_error", http.StatusInternalServerError}
	Unavailable          = Kind{"common.unavailable", http.StatusServiceUnavailable}

	// Rate limits.
	RateLimited = Kind{"rate_limits_m.exceeded", http.StatusTooManyRequests}

	// The shared query layer.
	QueryInvalidField       = Kind{"query_m.invalid_field", http.StatusBadRequest}
	QueryInvalidFormat      = Kind{"query_m.invalid_format", http.StatusBadRequest}
	QueryInvalidSortField   = Kind{"query_m.invalid_sort_field", http.StatusBadRequest}
	QueryInvalidSearchField = Kind{"query_m.invalid_search_field", http.StatusInternalServerError}

	// Sign-in, sessions, API keys.
	InvalidCredentials = Kind{"auth_m.invalid_credentials", http.StatusUnauthorized}
	CoolingOff         = Kind{"auth_m.cooling_off", http.StatusTooManyRequests}
	AuthUnavailable    = Kind{"auth_m.internal_server_error", http.StatusServiceUnavailable}
	SessionNotFound    = Kind{"auth_m.session_not_found", http.StatusNotFound}
	APIKeyNotFound     = Kind{"auth_m.api_key_not_found", http.StatusNotFound}

	// Users and credentials.
	UserNotFound        = Kind{"users.user_not_found", http.StatusNotFound}
	CredentialNotFound  = Kind{"users.credential_not_found", http.StatusNotFound}
	CredentialExists    = Kind{"users.credential_exists", http.StatusConflict}
	LastCredential      = Kind{"users.last_credential", http.StatusConflict}
	CredentialValidated = Kind{"users.credential_validated", http.StatusConflict}
	InvalidOTP          = Kind{"users.invalid_otp", http.StatusBadRequest}
	OTPExpired          = Kind{"users.otp_expired", http.StatusBadRequest}
	OTPAttemptsExceeded = Kind{"users.otp_attempts_exceeded", http.StatusTooManyRequests}
	OTPSendLimited      = Kind{"users.otp_send_limited", http.StatusTooManyRequests}
	LastAdministrator   = Kind{"users.last_administrator", http.StatusConflict}
	TooManyCredentials  = Kind{"users.too_many_credentials", http.StatusConflict}

	// Access control.
	RoleNotFound     = Kind{"rbac.role_not_found", http.StatusNotFound}
	RoleExists       = Kind{"rbac.role_exists", http.StatusConflict}
	RoleBuiltIn      = Kind{"rbac.role_built_in", http.StatusConflict}
	GrantNotFound    = Kind{"rbac.grant_not_found", http.StatusNotFound}
	GrantExists      = Kind{"rbac.grant_exists", http.StatusConflict}
	GrantNotHeld     = Kind{"rbac.grant_not_held", http.StatusForbidden}
	EndpointNotFound = Kind{"rbac.endpoint_not_found", http.StatusNotFound}

	// Customers.
	CustomerNotFound     = Kind{"customers.customer_not_found", http.StatusNotFound}
	InvalidKYCTransition = Kind{"customers.invalid_kyc_transition", http.StatusConflict}
	SelfVerification     = Kind{"customers.self_verification", http.StatusForbidden}

	// Personas.
	PersonaNotFound     = Kind{"personas.persona_not_found", http.StatusNotFound}
	PersonaUserNotFound = Kind{"personas.user_link_not_found", http.StatusNotFound}
	PersonaUserExists   = Kind{"personas.user_link_exists", http.StatusConflict}
	PersonaLinkNotFound = Kind{"personas.link_not_found", http.StatusNotFound}
	PersonaLinkExists   = Kind{"personas.link_exists", http.StatusConflict}

	// Payers.
	PayerNotFound = Kind{"payers.payer_not_found", http.StatusNotFound}

	// Chats.
	ChatNotFound            = Kind{"chats.chat_not_found", http.StatusNotFound}
	ChatParticipantNotFound = Kind{"chats.participant_not_found", http.StatusNotFound}
	ChatParticipantExists   = Kind{"chats.participant_exists", http.StatusConflict}
	ChatFixedParticipants   = Kind{"chats.fixed_participants", http.StatusConflict}
	ChatFull                = Kind{"chats.too_many_participants", http.StatusConflict}

	// Tasks.
	TaskNotFound          = Kind{"tasks.task_not_found", http.StatusNotFound}
	TaskInvalidTransition = Kind{"tasks.invalid_transition", http.StatusConflict}
	TaskAssigneeNotFound  = Kind{"tasks.assignee_not_found", http.StatusNotFound}
	TaskAssigneeExists    = Kind{"tasks.assignee_exists", http.StatusConflict}

	// Profile.
	InvalidFileType = Kind{"profile.invalid_file_type", http.StatusBadRequest}
	InvalidImage    = Kind{"profile.invalid_image", http.StatusBadRequest}
	AvatarNotFound  = Kind{"profile.avatar_not_found", http.StatusNotFound}

	// Notifications.
	NotificationNotFound = Kind{"notifications.notification_not_found", http.StatusNotFound}
	DeliveryNotFound     = Kind{"notifications.delivery_not_found", http.StatusNotFound}
	DeliveryNotDead      = Kind{"notifications.delivery_not_dead", http.StatusConflict}
	TooManyStreams       = Kind{"notifications.too_many_connections", http.StatusTooManyRequests}

	// Invoices. The code has no module, as the specification shows it.
	InvoiceInvalid = Kind{"invalid_input", http.StatusBadRequest}
)

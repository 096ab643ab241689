package directory

import (
	"net/http"

	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const tag = "Users"

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	var (
		signedUp = []string{access.Advisor, access.Customer, access.Registrant}
		members  = []string{access.Advisor, access.Customer}
		advisors = []string{access.Advisor}
	)
	rows := []endpoint.Endpoint{
		{Name: "users.register", Method: http.MethodPost, Path: "/v1/users/initiate-registration",
			Access: access.APIKey, Summary: "Register a user.",
			Faults: []apierr.Kind{apierr.CredentialExists, apierr.DisplayNameReserved, apierr.OTPSendLimited},
			Doc:    endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Handle: endpoint.JSON(http.StatusCreated, s.register)},
		// Public: an applicant who has left the page or changed the device has no token. The service limits by address and network.
		{Name: "users.complete_registration", Method: http.MethodPost, Path: "/v1/users/complete-registration",
			Access: access.Public, Summary: "Complete a registration with the code and the password.",
			Faults: []apierr.Kind{apierr.InvalidOTP, apierr.OTPExpired, apierr.OTPAttemptsExceeded, apierr.CredentialExists, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.completeRegistration)},
		{Name: "users.resend_registration", Method: http.MethodPost, Path: "/v1/users/resend-registration-code",
			Access: access.Public, Summary: "Send a new code for a registration.",
			Faults: []apierr.Kind{apierr.OTPSendLimited},
			Handle: endpoint.JSON(http.StatusOK, s.resendRegistration)},
		// Public: people who cannot sign in have no key of a program either. The service limits by address and network.
		{Name: "users.recover", Method: http.MethodPost, Path: "/v1/users/initiate-recovery",
			Access: access.Public, Summary: "Start the recovery of an account.",
			Faults: []apierr.Kind{apierr.OTPSendLimited}, Reports: endpoint.Event{Kind: endpoint.Recovery, Action: "users.recovery_started"},
			Handle: endpoint.JSON(http.StatusOK, s.initiateRecovery)},
		{Name: "users.complete_recovery", Method: http.MethodPost, Path: "/v1/users/complete-recovery",
			Access: access.Public, Summary: "Complete the recovery of an account.",
			Faults: []apierr.Kind{apierr.InvalidOTP}, Reports: endpoint.Event{Kind: endpoint.Recovery, Action: "users.recovery_completed"},
			Handle: endpoint.JSON(http.StatusOK, s.completeRecovery)},
		{Name: "users.list", Method: http.MethodGet, Path: "/v1/users",
			Access: access.On(access.Users, access.Read), Roles: advisors, Summary: "List users.",
			Doc:    endpoint.Doc{Search: userList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "users.me", Method: http.MethodGet, Path: "/v1/users/me",
			Access: access.Own, Roles: signedUp, Summary: "Get the caller's user.", WithoutFactor: true,
			Handle: endpoint.JSON(http.StatusOK, s.me)},
		{Name: "users.get", Method: http.MethodGet, Path: "/v1/users/{id}",
			Access: access.On(access.Users, access.Read), Roles: members, Summary: "Get a user.",
			Faults: []apierr.Kind{apierr.UserNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "users.update", Method: http.MethodPatch, Path: "/v1/users/{id}", Subject: access.UserIn("id"),
			Access: access.On(access.Users, access.Update), Roles: members,
			Summary: "Update a user.", Assurance: endpoint.SecondFactor.When("the status changes"),
			WithoutFactor: true, // for the language of the user; update checks the rest
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.DisplayNameReserved, apierr.LastAdministrator, apierr.PreconditionFailed,
				apierr.FactorRequired},
			Handle: endpoint.JSON(http.StatusOK, s.update)},
		{Name: "users.password", Method: http.MethodPut, Path: "/v1/users/{id}/password", Subject: access.UserIn("id"),
			Access: access.SignedIn, Roles: members, Summary: "Change a password.", PeopleOnly: true,
			Assurance: endpoint.SecondFactor.When("the password is that of another user, or the user has a second factor"),
			Faults:    []apierr.Kind{apierr.UserNotFound, apierr.LockedOut, apierr.PreconditionFailed, apierr.ServiceAccount},
			Handle:    endpoint.JSON(http.StatusOK, s.changePassword)},
		{Name: "users.roles", Method: http.MethodPut, Path: "/v1/users/{id}/roles", Subject: access.UserIn("id"),
			Access: access.On(access.Users, access.Update), Summary: "Replace the roles of a user.",
			Assurance: endpoint.SecondFactor,
			Faults:    []apierr.Kind{apierr.UserNotFound, apierr.GrantNotHeld, apierr.LastAdministrator, apierr.PreconditionFailed},
			Handle:    endpoint.JSON(http.StatusOK, s.setRoles)},
		{Name: "users.invitations.create", Method: http.MethodPost, Path: "/v1/invitations", Subject: access.NoSubject("the roles of the invitation are compared with those of the caller"),
			Access: access.On(access.Users, access.Create), Summary: "Invite a person by e-mail.",
			Assurance: endpoint.SecondFactor,
			Faults:    []apierr.Kind{apierr.GrantNotHeld, apierr.CredentialExists, apierr.OTPSendLimited},
			Handle:    endpoint.JSON(http.StatusCreated, s.invite)},
		{Name: "users.invitations.list", Method: http.MethodGet, Path: "/v1/invitations",
			Access: access.On(access.Users, access.Create), Summary: "List open and expired invitations.",
			Doc:    endpoint.Doc{Search: invitationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.invitations)},
		{Name: "users.invitations.resend", Method: http.MethodPost, Path: "/v1/invitations/{id}/resend", Subject: access.InvitationIn("id"),
			Access: access.On(access.Users, access.Create), Summary: "Send an invitation again, with a new link.",
			Assurance: endpoint.SecondFactor,
			Faults:    []apierr.Kind{apierr.InvitationNotFound, apierr.OTPSendLimited},
			Handle:    endpoint.JSON(http.StatusOK, s.resendInvitation)},
		{Name: "users.invitations.withdraw", Method: http.MethodDelete, Path: "/v1/invitations/{id}", Subject: access.InvitationIn("id"),
			Access: access.On(access.Users, access.Create), Summary: "Withdraw an invitation.",
			Faults: []apierr.Kind{apierr.InvitationNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.withdrawInvitation)},
		{Name: "users.invitations.view", Method: http.MethodPost, Path: "/v1/invitations/view",
			Access:  access.Public, // for people who have no account yet: the secret of the link authenticates them
			Summary: "Get the invitation of a link.",
			Faults:  []apierr.Kind{apierr.InvitationInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.viewInvitation)},
		{Name: "users.invitations.accept", Method: http.MethodPost, Path: "/v1/invitations/accept",
			Access:  access.Public, // as the row before
			Summary: "Accept an invitation and choose a password.",
			Faults:  []apierr.Kind{apierr.InvitationInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.accept)},
		{Name: "users.credentials.list", Method: http.MethodGet, Path: "/v1/users/{id}/credentials",
			Access: access.On(access.Credentials, access.Read), Roles: signedUp, Summary: "List the credentials of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound},
			Doc:    endpoint.Doc{Search: credentialList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.listCredentials)},
		{Name: "users.credentials.create", Method: http.MethodPost, Path: "/v1/users/{id}/credentials", Subject: access.UserIn("id"),
			// Users add credentials of their own without a grant on the type, which a rule for creation would require.
			Access: access.SignedIn, Roles: members, Summary: "Add a credential to a user.",
			Assurance: endpoint.SecondFactor,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialExists, apierr.TooManyCredentials, apierr.OTPSendLimited, apierr.ServiceAccount,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusCreated, s.addCredential)},
		{Name: "users.credentials.validate", Method: http.MethodPut, Path: "/v1/users/{id}/credentials/{credential_id}/validate", Subject: access.UserIn("id"),
			Access: access.On(access.Credentials, access.Update), Roles: signedUp, Summary: "Validate a credential.",
			Assurance: endpoint.SecondFactor.When("the user is not pending"),
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialNotFound, apierr.CredentialValidated, apierr.InvalidOTP,
				apierr.OTPExpired, apierr.OTPAttemptsExceeded, apierr.CredentialExists, apierr.PreconditionFailed,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.validate)},
		{Name: "users.credentials.send_otp", Method: http.MethodPost, Path: "/v1/users/{id}/credentials/{credential_id}/otp", Subject: access.UserIn("id"),
			Access: access.On(access.Credentials, access.Update), Roles: signedUp, Summary: "Send a one-time code for a credential.",
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialNotFound, apierr.CredentialValidated, apierr.OTPSendLimited},
			Handle: endpoint.JSON(http.StatusOK, s.resend)},
		{Name: "users.credentials.delete", Method: http.MethodDelete, Path: "/v1/users/credentials/{cred_id}", Subject: access.CredentialIn("cred_id"),
			Access: access.On(access.Credentials, access.Delete), Roles: members, Summary: "Delete a credential.",
			Assurance: endpoint.SecondFactor, MaxBody: signin.MaxBody,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.LastCredential, apierr.CredentialTooNew,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.deleteCredential)},
	}
	for i := range rows {
		if rows[i].Name == "users.update" || rows[i].Name == "users.roles" || rows[i].Name == "users.credentials.create" {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		rows[i].Tag, rows[i].Limit = tag, ratelimit.Private
		if rows[i].Access.IsPublic() {
			rows[i].Limit = ratelimit.Public
		}
	}
	return rows
}

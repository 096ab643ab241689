package main

import (
	"net/url"
	"regexp"
	"testing"
)

// customerPassword is the password of all accounts that the tests register.
const customerPassword = "eight quiet ducks cross lakes"

// account is a registered user with a session.
type account struct {
	*client
	id, email, credential, deviceToken string
}

// register registers a user and validates the e-mail address. The account has no session yet.
func (p *process) register(admin *client, email string) account {
	p.tb.Helper()
	var registered struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	p.keyed().do(p.tb, "POST", "/v1/users/initiate-registration", registrationOf("email", email, customerPassword), 201).into(p.tb, &registered)
	a := account{id: registered.UserID, email: email, credential: registered.Credential.ID}
	p.client("Authorization", "Bearer "+registered.AccessToken).do(p.tb, "PUT", "/v1/users/"+a.id+"/credentials/"+a.credential+"/validate",
		object("otp", sentCode(p.tb, admin, email)), 200)
	return a
}

// account registers a user, assigns a role and signs in.
func (p *process) account(admin *client, email, role string) account {
	p.tb.Helper()
	a := p.register(admin, email)
	admin.do(p.tb, "PUT", "/v1/users/"+a.id+"/roles", object("roles", []string{role}), 200)
	a.client = p.signIn(email, customerPassword)
	return a
}

// customer registers a user and signs in from a network.
func (p *process) customer(admin *client, email, network string) account {
	p.tb.Helper()
	a := p.register(admin, email)
	var tokens struct {
		AccessToken string `json:"access_token"`
		DeviceToken string `json:"device_token"`
	}
	p.client().from(network).do(p.tb, "POST", "/authenticate", object("user_id", email, "password", customerPassword), 200).into(p.tb, &tokens)
	a.client, a.deviceToken = p.client("Authorization", "Bearer "+tokens.AccessToken), tokens.DeviceToken
	return a
}

// registrationOf returns the body of a registration.
func registrationOf(kind, value, password string) string {
	return object("credential_type", kind, "credential_value", value, "password", password, "terms_accepted", true, "privacy_policy_accepted", true)
}

// credentialOf returns the body of a request that adds a credential.
func credentialOf(kind, value string) string {
	return object("credential_type", kind, "credential_value", value)
}

// sentMessages returns the messages that were sent to an address, the newest first.
func sentMessages(tb testing.TB, admin *client, to string) (texts []string) {
	tb.Helper()
	var sent struct {
		Data []struct{ Subject, Text string }
	}
	admin.do(tb, "GET", "/v1/notifications/deliveries?limit=100&sort=-created_at&search.to="+url.QueryEscape(to), "", 200).into(tb, &sent)
	for _, d := range sent.Data {
		texts = append(texts, d.Subject+"\n"+d.Text)
	}
	return texts
}

var otpPattern = regexp.MustCompile(`\b\d{6}\b`)

// sentCode returns the newest one-time code that was sent to an address.
func sentCode(tb testing.TB, admin *client, to string) string {
	tb.Helper()
	for _, text := range sentMessages(tb, admin, to) {
		if code := otpPattern.FindString(text); code != "" {
			return code
		}
	}
	tb.Fatalf("no code was sent to %s", to)
	return ""
}

package systemtest

import (
	"net/url"
	"regexp"
	"testing"
)

// CustomerPassword is the password of all accounts that the tests register.
const CustomerPassword = "eight quiet ducks cross lakes"

// Account is a registered user with a session.
type Account struct {
	*Client
	ID, Email, Credential, DeviceToken string
}

// Register registers a user and validates the e-mail address. The account has no session yet.
func (p *Process) Register(admin *Client, email string) Account {
	p.TB.Helper()
	var registered struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	p.Keyed().Do(p.TB, "POST", "/v1/users/initiate-registration", RegistrationOf("email", email, CustomerPassword), 201).Decode(p.TB, &registered)
	a := Account{ID: registered.UserID, Email: email, Credential: registered.Credential.ID}
	p.Client("Authorization", "Bearer "+registered.AccessToken).Do(p.TB, "PUT", "/v1/users/"+a.ID+"/credentials/"+a.Credential+"/validate",
		Object("otp", SentCode(p.TB, admin, email)), 200)
	return a
}

// Account registers a user, assigns a role and signs in.
func (p *Process) Account(admin *Client, email, role string) Account {
	p.TB.Helper()
	a := p.Register(admin, email)
	admin.Do(p.TB, "PUT", "/v1/users/"+a.ID+"/roles", Object("roles", []string{role}), 200)
	a.Client = p.SignIn(email, CustomerPassword)
	return a
}

// Customer registers a user and signs in from a network.
func (p *Process) Customer(admin *Client, email, network string) Account {
	p.TB.Helper()
	a := p.Register(admin, email)
	var tokens struct {
		AccessToken string `json:"access_token"`
		DeviceToken string `json:"device_token"`
	}
	p.Client().From(network).Do(p.TB, "POST", "/authenticate", Object("user_id", email, "password", CustomerPassword), 200).Decode(p.TB, &tokens)
	a.Client, a.DeviceToken = p.Client("Authorization", "Bearer "+tokens.AccessToken), tokens.DeviceToken
	return a
}

// RegistrationOf returns the body of a registration.
func RegistrationOf(kind, value, password string) string {
	return Object("credential_type", kind, "credential_value", value, "password", password, "terms_accepted", true, "privacy_policy_accepted", true)
}

// CredentialOf returns the body of a request that adds a credential.
func CredentialOf(kind, value string) string {
	return Object("credential_type", kind, "credential_value", value, "password", CustomerPassword)
}

// SentMessages returns the messages that were sent to an address, the newest first.
func SentMessages(tb testing.TB, admin *Client, to string) (texts []string) {
	tb.Helper()
	var sent struct {
		Data []struct{ Subject, Text string }
	}
	admin.Do(tb, "GET", "/v1/notifications/deliveries?limit=100&sort=-created_at&search.to="+url.QueryEscape(to), "", 200).Decode(tb, &sent)
	for _, d := range sent.Data {
		texts = append(texts, d.Subject+"\n"+d.Text)
	}
	return texts
}

// OTPPattern matches a one-time code in a message.
var OTPPattern = regexp.MustCompile(`\b\d{6}\b`)

// SentCode returns the newest one-time code that was sent to an address.
func SentCode(tb testing.TB, admin *Client, to string) string {
	tb.Helper()
	for _, text := range SentMessages(tb, admin, to) {
		if code := OTPPattern.FindString(text); code != "" {
			return code
		}
	}
	tb.Fatalf("no code was sent to %s", to)
	return ""
}

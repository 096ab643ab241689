package types

// Address is where messages reach a user.
type Address struct {
	UserID   string
	Channel  string // email or sms
	Value    string // the e-mail address or phone number
	Language string // in which the user reads messages
	OnTrial  bool   // it was added a short time ago (see the package signin)
}

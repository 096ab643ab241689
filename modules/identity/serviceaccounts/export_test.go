package serviceaccounts

// Unexported functions for tests.
var (
	ParseToken   = parseToken
	NewTokenText = newTokenText
	ParseNetwork = parseNetwork
)

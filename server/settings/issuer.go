package settings

import (
	"errors"
	"strings"
)

// issuerName is the name of the bank in authenticators. A colon would separate it from the account (key URI format).
var issuerName = text("name", func(raw string) (string, error) {
	name, err := providerName.parse(raw)
	if err == nil && (name == "" || strings.Contains(name, ":")) {
		err = errors.New("must not be empty or contain a colon")
	}
	return name, err
})

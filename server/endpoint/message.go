package endpoint

import "context"

// Texts returns texts of the locale files.
type Texts interface {
	Text(lang, key string, args map[string]any) string
}

// Message is the answer of operations that only confirm.
type Message struct {
	Message string `json:"message"`
}

// Confirm returns a confirmation in the language of the request.
func Confirm(ctx context.Context, texts Texts, key string) Message {
	return Message{Message: texts.Text(Language(ctx), key, nil)}
}

package types

// NilIfEmpty returns a pointer to the text, or nil for the empty text.
func NilIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// EmptyIfNil returns the text that p points to, or the empty text for nil.
func EmptyIfNil(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

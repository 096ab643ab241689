package apierr

// Text is a translatable sentence: a key of the locale files and the values of its placeholders.
type Text struct {
	Key  string
	Args Args
}

// Fields collects the wrong fields of an input, with one sentence each, so that all are reported at once. The first sentence
// of a field wins. Nested members are named with dots and indexes, such as "address.city" or "documents.0.type". The zero
// value is ready to use.
type Fields struct {
	names []string
	texts map[string]Text
}

// Add adds a wrong field. The key is one of the locale files, usually "invalid.<rule>"; args is optional.
func (f *Fields) Add(field, key string, args ...Args) {
	if _, known := f.texts[field]; known {
		return
	}
	if f.texts == nil {
		f.texts = map[string]Text{}
	}
	text := Text{Key: key}
	if len(args) > 0 {
		text.Args = args[0]
	}
	f.names = append(f.names, field)
	f.texts[field] = text
}

// Has reports whether the field is wrong.
func (f *Fields) Has(field string) bool {
	_, known := f.texts[field]
	return known
}

// Get returns the sentence about a field.
func (f *Fields) Get(field string) (text Text, wrong bool) {
	if f == nil {
		return Text{}, false
	}
	text, wrong = f.texts[field]
	return text, wrong
}

// Len returns the number of wrong fields.
func (f *Fields) Len() int {
	if f == nil {
		return 0
	}
	return len(f.names)
}

// Empty reports whether no field is wrong.
func (f *Fields) Empty() bool { return f == nil || len(f.names) == 0 }

// All yields the fields in the order in which they were added.
func (f *Fields) All(yield func(field string, text Text) bool) {
	if f == nil {
		return
	}
	for _, name := range f.names {
		if !yield(name, f.texts[name]) {
			return
		}
	}
}

// Err returns nil if no field is wrong, otherwise [InvalidInput] with the fields.
func (f *Fields) Err() error {
	if f.Empty() {
		return nil
	}
	return &Error{Kind: InvalidInput, Fields: f}
}

// Invalid returns [InvalidInput] for a single field.
func Invalid(field, key string, args ...Args) error {
	var f Fields
	f.Add(field, key, args...)
	return f.Err()
}

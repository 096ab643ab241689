package generate

import "slices"

// pageMembers are the members of the pages of lists. Rows of a page that is stacked are grouped by keys. Not every list has people.
var pageMembers = []string{"data", "keys", "metadata", "total", "total_unfiltered", "has_more", "next_cursor", "people"}

// generic returns the name of the generic type that a page is an instance of, and the type of its rows; "" for other types.
func (t *namedType) generic() (name string, row typeOf) {
	data, cursor := t.field("data"), t.field("next_cursor")
	foreign := func(f field) bool { return !slices.Contains(pageMembers, f.wire) }
	if data == nil || cursor == nil || slices.ContainsFunc(t.fields, foreign) {
		return "", typeOf{}
	}
	if data.typ.kind == object {
		return "StackedPage", *data.typ.elem.elem
	}
	return "Page", *data.typ.elem
}

func (t *namedType) field(wire string) *field {
	for i := range t.fields {
		if t.fields[i].wire == wire {
			return &t.fields[i]
		}
	}
	return nil
}

// instance returns the generic type that a name of the document stands for, and the type of its rows; "" for other names.
func (m *model) instance(name string) (generic string, row typeOf) {
	if t := m.typeNamed(name); t != nil {
		return t.generic()
	}
	return "", typeOf{}
}

// declared returns the types that a client declares: all but the pages, and a generic type for each form of page. Its rows have the
// type T, and it has each member that one of the pages has.
func (m *model) declared() []namedType {
	var all []namedType
	at := map[string]int{}
	for _, t := range m.types {
		name, _ := t.generic()
		if name == "" {
			all = append(all, t)
			continue
		}
		i, found := at[name]
		if !found {
			i = len(all)
			at[name] = i
			doc := map[string]string{"Page": "A page of a list.", "StackedPage": "A page of a list whose rows are grouped."}[name]
			all = append(all, namedType{name: name, doc: doc, generics: true})
		}
		if len(t.fields) > len(all[i].fields) {
			all[i].fields = slices.Clone(t.fields)
			all[i].field("data").typ = withRows(all[i].field("data").typ, typeOf{kind: named, name: "T"})
		}
	}
	return all
}

// withRows returns the type of the rows of a page, with another type of each row.
func withRows(data, row typeOf) typeOf {
	if data.kind == object { // the rows of each group
		grouped := withRows(*data.elem, row)
		data.elem = &grouped
		return data
	}
	data.elem = &row
	return data
}

// Package recordtype declares a record type that is one row of a table. From one [Declaration] follow the statements that read and write
// it, the fields of its list, its digest in the audit trail, its export and erasure, the words that find it, and the rules for its
// members in inputs. A [Service] has the operations of such records; a module adds what is special about its own.
//
// A column belongs to the member with the same JSON name, or with the tag `column`. It must say whether it is personal: the program does
// not start otherwise, so that no erasure forgets a column. A rule about two members is code of the module.
package recordtype

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Column is a column of the table. Personal or Public is required.
type Column struct {
	Name     string
	Personal string // the SQL value that an erasure stores, such as NULL
	Public   string // why an erasure keeps the value
	Fixed    bool   // an update does not write it
	Folded   bool   // the column with the suffix _key has types.Fold of the text
	Sorted   bool   // the column with the suffix _order has types.SortKey of the text
	Weighs   bool   // its length counts towards the quota of the creator
	Parse    Rule   // for the member of inputs with the same name; nil: [Type.Parse] leaves it
	Words    Words  // what a search finds
	// Field is the field of the list; nil: lists neither search nor sort by the column. Name and Column, and Key of a folded and Order of
	// a sorted column, are set.
	Field *list.Field
}

// Words is where the words of a column are in the text index.
type Words uint8

// The places of words.
const (
	None  Words = iota
	Title       // the name that a record is known by
	Body
)

// Record is a record with a version, whose personal data can be erased.
type Record interface {
	endpoint.Tagged
	// Erased reports whether the personal data was erased. The record does not change any more.
	Erased() bool
}

// Declaration declares a record type. The table has, beside Columns, the columns id, created_at, created_by, by_staff, modified_at,
// modified_by, version and erased_at, and T has members for them.
type Declaration[T Record] struct {
	Type      access.RecordType
	From      string // the table
	Missing   apierr.Kind
	Relations []records.Relation
	Columns   []Column
	// ListHead adds the common columns to the fields of the list.
	ListHead bool
	// Holds says what of a person the table holds. Section is the part of exports with the records of a person, whose id is in the
	// column Subject. Its Endpoint is that of Type.
	Holds   string
	Section personal.About
	Subject string
	// Hit returns how a search shows a record. Its id and score are set.
	Hit func(T) find.Hit

	// Form counts the forms of the digests, see [records.Proof].
	Form int
	// Record returns what digests cover; nil: the answer, and the version and folded columns, which it does not show.
	Record func(T) store.Record
}

// common are the columns of every record type, around the declared ones.
var (
	first = []Column{{Name: "id", Public: "an id", Fixed: true, Field: &list.Field{Type: list.UUID}}}
	last  = []Column{
		{Name: "created_at", Public: "a time", Fixed: true, Field: &list.Field{Type: list.Time}},
		{Name: "created_by", Public: "an id", Fixed: true, Field: &list.Field{Type: list.UUID, Index: list.ThenCreated}},
		{Name: "by_staff", Public: "whether the creator acted for the bank", Fixed: true},
		{Name: "modified_at", Public: "a time", Field: &list.Field{Type: list.Time}},
		{Name: "modified_by", Public: "an id", Field: &list.Field{Type: list.UUID}},
		{Name: "version", Public: "a number"},
		{Name: "erased_at", Public: "a time", Fixed: true},
	}
)

// Type is a declared record type.
type Type[T Record] struct {
	*records.Table[T]
	List *list.List[T]

	d       Declaration[T]
	columns []Column
	indexes []int          // of the fields in T, for each column
	member  map[string]int // the same by name
	keys    []string       // the derived columns that digests cover

	insert, update, erase string
}

const (
	keySuffix   = "_key"
	orderSuffix = "_order"
)

// New prepares a record type. It panics for an incomplete declaration, which is a programming error.
func New[T Record](d Declaration[T]) *Type[T] {
	d.Section.Endpoint = d.Type.Shown
	t := &Type[T]{d: d, member: members(reflect.TypeFor[T]())}
	t.columns = slices.Concat(first, d.Columns, last)
	var names, inserted, updated, erased []string
	fields := list.Fields{}
	for _, c := range t.columns {
		if _, known := t.member[c.Name]; !known {
			panic("recordtype: " + d.From + "." + c.Name + " has no member")
		}
		if (c.Personal == "") == (c.Public == "") {
			panic("recordtype: say whether " + d.From + "." + c.Name + " is personal or public")
		}
		names, t.indexes = append(names, c.Name), append(t.indexes, t.member[c.Name])
		for _, name := range append([]string{c.Name}, c.derived()...) {
			inserted = append(inserted, name)
			if !c.Fixed {
				updated = append(updated, fmt.Sprintf("%s = $%d", name, len(updated)+2))
			}
		}
		if c.Personal != "" {
			erased = append(erased, c.Name+" = "+c.Personal)
			for _, name := range c.derived() {
				erased = append(erased, name+" = ''")
			}
		}
		if c.Folded {
			t.keys = append(t.keys, c.Name+keySuffix)
		}
		if c.Field != nil && (d.ListHead || slices.ContainsFunc(d.Columns, func(own Column) bool { return own.Name == c.Name })) {
			fields = append(fields, c.field())
		}
	}
	for name := range t.member {
		if name != "" && name != "-" && !slices.Contains(names, name) {
			panic("recordtype: " + name + " of " + d.From + " has no column")
		}
	}
	places := make([]string, len(inserted))
	for i := range places {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	columns := strings.Join(names, ", ")
	t.insert = "INSERT INTO " + d.From + " (" + strings.Join(inserted, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")"
	t.update = "UPDATE " + d.From + " SET " + strings.Join(updated, ", ") + " WHERE id = $1"
	t.erase = "UPDATE " + d.From + " SET " + strings.Join(append(erased, "modified_at = $2", "modified_by = $3", "version = version + 1", "erased_at = $2"), ", ") +
		" WHERE id = $1"
	record := d.Record
	if record == nil {
		record = func(row T) store.Record { return t.record(row, t.computed(row)) }
	}
	scan := func(row records.Row) (T, error) { return t.scan(row) }
	t.Table = &records.Table[T]{Type: d.Type, From: d.From, Columns: columns, Scan: scan, Relations: d.Relations, Missing: d.Missing, Record: record}
	t.List = list.New(list.Source[T]{From: d.From, Columns: columns, ID: "id", Created: "created_at", Tables: []string{d.From}, Scan: scan, Fields: fields})
	return t
}

// members returns the index of each member of a struct, by the name of its column.
func members(record reflect.Type) map[string]int {
	found := map[string]int{}
	for i := range record.NumField() {
		tag := record.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		if column, ok := tag.Lookup("column"); ok {
			name = column
		}
		found[name] = i
	}
	return found
}

// derived returns the names of the columns with other forms of the text.
func (c Column) derived() (names []string) {
	if c.Folded {
		names = append(names, c.Name+keySuffix)
	}
	if c.Sorted {
		names = append(names, c.Name+orderSuffix)
	}
	return names
}

func (c Column) field() list.Field {
	f := *c.Field
	f.Name, f.Column = c.Name, c.Name
	if c.Folded {
		f.Key = c.Name + keySuffix
	}
	if c.Sorted {
		f.Order = c.Name + orderSuffix
	}
	return f
}

// at returns the member of a column. record is a pointer.
func (t *Type[T]) at(record *T, column string) reflect.Value {
	return reflect.ValueOf(record).Elem().Field(t.member[column])
}

// scan reads the columns of the table, and further ones.
func (t *Type[T]) scan(row records.Row, further ...any) (record T, err error) {
	fields := reflect.ValueOf(&record).Elem()
	dest := make([]any, len(t.indexes), len(t.indexes)+len(further))
	for i, index := range t.indexes {
		dest[i] = fields.Field(index).Addr().Interface()
		if json, ok := dest[i].(*jsontext.Value); ok {
			dest[i] = (*[]byte)(json)
		}
	}
	return record, row.Scan(append(dest, further...)...)
}

// args returns the arguments of a statement that writes a record.
func (t *Type[T]) args(record T, wanted func(Column) bool) (args []any) {
	for _, c := range t.columns {
		if !wanted(c) {
			continue
		}
		member := t.at(&record, c.Name)
		value := member.Interface()
		if json, ok := value.(jsontext.Value); ok {
			value = string(json)
		}
		args = append(args, value)
		if c.Folded {
			args = append(args, types.Fold(textOf(member)))
		}
		if c.Sorted {
			args = append(args, types.SortKey(textOf(member)))
		}
	}
	return args
}

// textOf returns the text of a member; empty for none.
func textOf(member reflect.Value) string {
	if member.Kind() == reflect.Pointer {
		if member.IsNil() {
			return ""
		}
		member = member.Elem()
	}
	if json, ok := member.Interface().(jsontext.Value); ok {
		return string(json)
	}
	return member.String()
}

// Insert stores a new record.
func (t *Type[T]) Insert(ctx context.Context, tx *store.Tx, record T) error {
	_, err := tx.Exec(ctx, t.insert, t.args(record, func(Column) bool { return true })...)
	return err
}

// Write stores the new state of a record.
func (t *Type[T]) Write(ctx context.Context, tx *store.Tx, record T) error {
	args := []any{t.at(&record, "id").String()}
	_, err := tx.Exec(ctx, t.update, append(args, t.args(record, func(c Column) bool { return !c.Fixed })...)...)
	return err
}

// Owner returns the creator of a record, whose quota counts it.
func (t *Type[T]) Owner(record T) string { return t.at(&record, "created_by").String() }

// Weight returns how many bytes of the quota a record uses.
func (t *Type[T]) Weight(record T) int64 {
	var texts []string
	for _, c := range t.columns {
		if c.Weighs {
			texts = append(texts, textOf(t.at(&record, c.Name)))
		}
	}
	return records.Weight(texts...)
}

// computed returns the folded columns that belong to a record.
func (t *Type[T]) computed(record T) (keys []string) {
	for _, c := range t.columns {
		if c.Folded {
			keys = append(keys, types.Fold(textOf(t.at(&record, c.Name))))
		}
	}
	return keys
}

// record returns what digests cover.
func (t *Type[T]) record(row T, keys []string) store.Record {
	stored := fmt.Appendf(nil, `{"version":%d,"by_staff":%t`, t.at(&row, "version").Int(), t.at(&row, "by_staff").Bool())
	for i, name := range t.keys {
		stored, _ = jsontext.AppendQuote(fmt.Appendf(stored, `,"%s":`, name), keys[i])
	}
	return store.Record{Answer: row, Stored: jsontext.Value(append(stored, '}'))}
}

// Read reads a record with its folded columns as they are stored, so that a check finds a wrong one.
func (t *Type[T]) Read(ctx context.Context, q store.Querier, id string) (record T, keys []string, err error) {
	keys = make([]string, len(t.keys))
	further := make([]any, len(keys))
	for i := range keys {
		further[i] = &keys[i]
	}
	columns := strings.Join(append([]string{t.Columns}, t.keys...), ", ")
	record, err = t.scan(q.QueryRow(ctx, "SELECT "+columns+" FROM "+t.From+" WHERE id = $1", id), further...)
	return record, keys, err
}

// Changes are the members whose changes the audit trail keeps: all but the common ones.
var Changes = &store.ChangeRule{Omit: []string{"modified_at", "modified_by", "erased_at"}}

// Proof declares how the audit trail reads the records.
func (t *Type[T]) Proof() records.Proof {
	proof := t.Table.Proof()
	proof.Changes, proof.Form = Changes, t.d.Form
	proof.Read = func(ctx context.Context, q store.Querier, id string) (store.Record, error) {
		row, keys, err := t.Read(ctx, q, id)
		if err != nil {
			return store.Record{}, err
		}
		return t.record(row, keys), nil
	}
	return proof
}

// Rule checks the text of a member and returns the text to store. It adds an error for a wrong one.
type Rule func(v *apierr.Fields, name, text string) string

// Line is the rule for an optional single line of at most limit characters.
func Line(limit int) Rule {
	return func(v *apierr.Fields, name, text string) string { return validate.Line(v, name, text, limit) }
}

// RequiredLine is the rule for a single line that must not be empty.
func RequiredLine(limit int) Rule {
	return func(v *apierr.Fields, name, text string) string { return validate.Required(v, name, text, limit) }
}

// Parsed is the rule for a text that a parser of package types accepts. An empty text is none.
func Parsed[P any](parse func(string) (P, error)) Rule {
	return func(v *apierr.Fields, name, text string) string {
		if text == "" {
			return ""
		}
		return Given(parse)(v, name, text)
	}
}

// Given is [Parsed] without the exception: who has no value leaves the member out, or sends null.
func Given[P any](parse func(string) (P, error)) Rule {
	return func(v *apierr.Fields, name, text string) string {
		parsed, err := parse(text)
		if err != nil {
			validate.Note(v, name, err)
			return ""
		}
		return fmt.Sprint(parsed)
	}
}

// Required is another rule for a text that must not be empty.
func Required(rule Rule) Rule {
	return func(v *apierr.Fields, name, text string) string {
		if text == "" {
			v.Add(name, "invalid.required")
			return ""
		}
		return rule(v, name, text)
	}
}

// JSON is the rule for a free-form JSON object.
func JSON(v *apierr.Fields, name, text string) string {
	return validate.Metadata(v, name, jsontext.Value(text))
}

// Parse returns a record with the members of an input that have rules. in is a pointer to a struct. A member is a text, a pointer to one,
// or metadata. Members of the type [endpoint.Optional] that the request leaves out stay as they are.
func (t *Type[T]) Parse(v *apierr.Fields, in any, record T) T {
	input := reflect.ValueOf(in).Elem()
	given := members(input.Type())
	for _, c := range t.columns {
		index, known := given[c.Name]
		if c.Parse == nil || !known {
			continue
		}
		text, present, keep := content(input.Field(index).Interface())
		if keep {
			continue
		}
		if present {
			text = c.Parse(v, c.Name, text)
		}
		set(t.at(&record, c.Name), text)
	}
	return record
}

// content returns the text of a member of an input. keep is true for a member that leaves the record as it is.
func content(member any) (text string, present, keep bool) {
	switch m := member.(type) {
	case string:
		return m, true, false
	case *string:
		return types.EmptyIfNil(m), m != nil, false
	case jsontext.Value:
		return string(m), true, false
	case endpoint.Optional[string]:
		return m.Value, true, !m.Given
	case endpoint.Optional[jsontext.Value]:
		return string(m.Value), true, !m.Given
	}
	panic(fmt.Sprintf("recordtype: a member of an input has the type %T", member))
}

// set stores a text in a member of a record.
func set(member reflect.Value, text string) {
	switch m := member.Addr().Interface().(type) {
	case *string:
		*m = text
	case **string:
		*m = types.NilIfEmpty(text)
	case *jsontext.Value:
		*m = jsontext.Value(text)
	case sql.Scanner:
		if err := m.Scan(text); err != nil {
			panic(fmt.Sprintf("recordtype: the rule of a member returned %q: %v", text, err))
		}
	default:
		panic(fmt.Sprintf("recordtype: a member of a record has the type %s", member.Type()))
	}
}

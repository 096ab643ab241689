// Package evidence separates what is proven about a person from what somebody claims about themselves.
//
// A value is proven if staff wrote it, if its user has validated it, or if a reviewer has confirmed it. Everything else is claimed: the
// owner of a record may write anything into it. Functions that exclude, link, match, hold or erase take a [Proven] value, so that the
// compiler refuses a claimed one. A claimed value may raise a flag for people to look at. It never decides.
//
// Only the packages that establish a proof may construct a [Proven]: a test (modules/app/treetest) lists them.
package evidence

// Proven is a value with a proof.
type Proven[T any] struct{ value T }

// Value returns the value.
func (p Proven[T]) Value() T { return p.value }

// Claimed is a value that somebody wrote about themselves.
type Claimed[T any] struct{ value T }

// Value returns the value.
func (c Claimed[T]) Value() T { return c.value }

// Claim returns a claimed value.
func Claim[T any](value T) Claimed[T] { return Claimed[T]{value} }

// Validated returns a value that its user has validated: they have shown access to an address.
func Validated[T any](value T) Proven[T] { return Proven[T]{value} }

// Recorded returns a value that staff wrote, or that a reviewer has confirmed, as the database says.
func Recorded[T any](value T) Proven[T] { return Proven[T]{value} }

// Values returns the values of a list.
func Values[T any](all []Proven[T]) []T {
	values := make([]T, len(all))
	for i, p := range all {
		values[i] = p.value
	}
	return values
}

// Said returns the values of a list of claims. It is for the comparison with their own author: what people say counts against them.
func Said[T any](all []Claimed[T]) []T {
	values := make([]T, len(all))
	for i, c := range all {
		values[i] = c.value
	}
	return values
}

// User is what is known of a user: keyed digests of present and former addresses and names.
type User struct {
	Addresses []Proven[string]  // e-mail addresses and phone numbers that the user has validated
	Names     []Claimed[string] // display names and user names, which users choose
}

// Each returns values that follow from a proven one, such as its digests.
func Each[T, U any](p Proven[T], derive func(T) []U) []Proven[U] {
	values := derive(p.value)
	all := make([]Proven[U], len(values))
	for i, value := range values {
		all[i] = Proven[U]{value}
	}
	return all
}

package store

import (
	"strconv"
	"strings"
)

// In returns the placeholders of an IN list for n values, numbered from first on: In(2, 3) is "$2, $3, $4, $5". Bind the
// values with [AppendIn]. Both round the length up to a power of two, so that lists of different lengths share few
// statement texts, each of which a connection compiles and keeps.
//
//	text := "SELECT id FROM payers WHERE customer_id = $1 AND id IN (" + store.In(2, len(ids)) + ")"
//	rows, err := q.Query(ctx, text, store.AppendIn([]any{customerID}, ids)...)
//
// The list is portable to every engine. An empty one matches nothing. Split long lists (slices.Chunk): an engine takes
// 32,766 parameters at most.
func In(first, n int) string {
	last := first + inLength(n) - 1
	if last <= keptPlaces {
		return places[placeAt(first) : placeAt(last+1)-len(placeSeparator)]
	}
	return writePlaces(first, last)
}

// AppendIn appends the values of an IN list to the arguments of a statement. It repeats the last value until the list has
// the length that [In] gives it; repetitions do not change which rows match.
func AppendIn[T any](args []any, values []T) []any {
	if len(values) == 0 {
		return append(args, nil)
	}
	for _, value := range values {
		args = append(args, value)
	}
	last := args[len(args)-1]
	for range inLength(len(values)) - len(values) {
		args = append(args, last)
	}
	return args
}

// inLength returns the length of an IN list of n values: the next power of two, and 1 for an empty list.
func inLength(n int) int {
	length := 1
	for length < n {
		length *= 2
	}
	return length
}

const (
	placeSeparator = ", "
	// keptPlaces is the highest placeholder in places. Lists beyond it are rare and are formatted each time.
	keptPlaces = 999
)

// places holds the placeholders $1 to $999. Lists are cut out of it, which allocates nothing.
var places = writePlaces(1, keptPlaces) + placeSeparator

// placeAt returns where the placeholder with a number begins in places.
func placeAt(number int) int {
	const perDigit = len("$" + placeSeparator)
	at := (number - 1) * (perDigit + 1)
	return at + max(0, number-10) + max(0, number-100) // second and third digits
}

// writePlaces writes the placeholders from first to last.
func writePlaces(first, last int) string {
	var b strings.Builder
	for number := first; number <= last; number++ {
		if number > first {
			b.WriteString(placeSeparator)
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(number))
	}
	return b.String()
}

package notifications

import (
	"fmt"
	"iter"
	"strings"
	"sync"
)

const insertNotice = `
	INSERT INTO notices (id, event, customer_id, rec_type, rec_id, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

// batchSizes are how many rows one statement writes. Few sizes make few statements to be compiled and kept.
var batchSizes = [...]int{128, 16, 4, 1}

// batches cuts a list into parts of these sizes.
func batches[T any](all []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for _, size := range batchSizes {
			for len(all) >= size {
				if !yield(all[:size]) {
					return
				}
				all = all[size:]
			}
		}
	}
}

var statements sync.Map // kind and size → text

type statementKey struct {
	name string
	size int
}

// statement makes the text of a statement over n rows once.
func statement(name string, n int, build func() string) string {
	key := statementKey{name, n}
	if text, ok := statements.Load(key); ok {
		return text.(string)
	}
	text := build()
	statements.Store(key, text)
	return text
}

// placeholders are n rows of width placeholders each, after the first used ones: ($3, $4), ($5, $6).
func placeholders(n, width, used int) string {
	var b strings.Builder
	for row := range n {
		if row > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for column := range width {
			if column > 0 {
				b.WriteString(", ")
			}
			used++
			fmt.Fprintf(&b, "$%d", used)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// What all copies of a notice share is bound once; each has its own id and recipient.
const (
	sharedCopyColumns = `notice_id, customer_id, event, title_key, content_key, content, content_low, rec_type, rec_id, metadata,
		chat_message_id, system, created_at`
	sharedCopyArgs = 13
)

// insertCopiesStatement writes n copies.
func insertCopiesStatement(n int) string {
	return statement("copies", n, func() string {
		shared := strings.Trim(placeholders(1, sharedCopyArgs, 0), "()")
		rows := strings.ReplaceAll(placeholders(n, 2, sharedCopyArgs), ")", ", "+shared+")")
		return `
	INSERT INTO notifications (id, user_id, ` + sharedCopyColumns + `)
	VALUES ` + rows
	})
}

const selectLatest = `SELECT COALESCE(MAX(created_at), 0) FROM notifications WHERE deleted = FALSE`

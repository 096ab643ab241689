package notifications

import (
	"fmt"
	"iter"
	"strings"
	"sync"
)

const insertParent = `
	INSERT INTO notices (id, event, customer_id, rec_type, rec_id, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

// batchSizes are the numbers of rows that one statement writes. Few sizes mean few statements to compile and keep.
var batchSizes = [...]int{128, 16, 4, 1}

// batches splits a list into parts of these sizes.
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

var statements sync.Map // texts by statementKey

type statementKey struct {
	name string
	size int
}

// statement returns the text of a statement for n rows, which it builds once.
func statement(name string, n int, build func() string) string {
	key := statementKey{name, n}
	if text, ok := statements.Load(key); ok {
		return text.(string)
	}
	text := build()
	statements.Store(key, text)
	return text
}

// placeholders returns n rows of width placeholders each, numbered after the first used ones: ($3, $4), ($5, $6).
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

// The values that all notifications of an event share are bound once.
const (
	sharedColumns = `notice_id, customer_id, event, title_key, content_key, content, content_low, rec_type, rec_id, metadata,
		chat_message_id, system, created_at`
	sharedArgs = 13
)

// insertNotificationsStatement returns the statement that writes n notifications.
func insertNotificationsStatement(n int) string {
	return statement("copies", n, func() string {
		shared := strings.Trim(placeholders(1, sharedArgs, 0), "()")
		rows := strings.ReplaceAll(placeholders(n, 2, sharedArgs), ")", ", "+shared+")")
		return `
	INSERT INTO notifications (id, user_id, ` + sharedColumns + `)
	VALUES ` + rows
	})
}

const selectLatest = `SELECT COALESCE(MAX(created_at), 0) FROM notifications WHERE deleted = FALSE`

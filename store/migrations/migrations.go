// Package migrations holds the schema as numbered SQL files. Files that have landed are frozen.
package migrations

import "embed"

// Files holds the migrations NNNN_name.sql.
//
//go:embed *.sql
var Files embed.FS

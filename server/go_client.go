package server

import "embed"

// GoClient contains the sources of the Go client below client/, with their tests. [kontor/server/sdk] makes a module of them.
//
//go:embed client/*.go
var GoClient embed.FS

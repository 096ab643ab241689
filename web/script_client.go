package web

import "embed"

// ScriptClient contains the npm package of the TypeScript client below client/. [kontor/server/sdk] packs it.
//
//go:embed client/package.json client/README.md client/example.ts client/dist
var ScriptClient embed.FS

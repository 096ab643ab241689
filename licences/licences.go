// Package licences contains the licence of Kontor and those of the software that its executable contains.
package licences

import _ "embed"

// Kontor is the licence of Kontor.
//
//go:embed LICENSE
var Kontor []byte

// Package licences contains the licence of Kontor and those of the software that its executable contains.
package licences

import _ "embed"

// Kontor is the licence of Kontor.
//
//go:embed LICENSE
var Kontor []byte

// ThirdParty are the licences of the software in the executable: the linked modules, Go, PDFium with its libraries, and the packages
// of the console.
//
//go:embed THIRD_PARTY_LICENSES
var ThirdParty string

package endpoint

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kontor/server/apierr"
)

// DeviceHeader is the header in which clients name their device. A row that uses the name lists the header in its Doc.
const DeviceHeader = "X-Device-ID"

// MaxDeviceID is the maximum number of characters of a device's name.
const MaxDeviceID = 128

// CheckHeaders returns apierr.InvalidInput for a malformed header that the row documents.
func (e *Endpoint) CheckHeaders(info *Info) error {
	if !slices.Contains(e.Doc.Headers, DeviceHeader) {
		return nil
	}
	id := info.DeviceID
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > MaxDeviceID || strings.ContainsFunc(id, hidden) {
		return apierr.Invalid(DeviceHeader, "invalid.device_id", apierr.Args{"Max": MaxDeviceID})
	}
	return nil
}

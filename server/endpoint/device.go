package endpoint

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kontor/server/apierr"
)

// Headers of requests about the device of the client. A handler gets those that its row lists in its Doc.
const (
	DeviceHeader = "X-Device-ID"
	TokenHeader  = "X-Device-Token"
)

// MaxDeviceID is the maximum number of characters of a device's name.
const MaxDeviceID = 128

// BindDevice sets the device of a request from the headers that the row documents. header returns the value of one. BindDevice returns
// apierr.InvalidInput for a malformed name.
func (e *Endpoint) BindDevice(info *Info, header func(name string) string) error {
	if slices.Contains(e.Doc.Headers, TokenHeader) {
		info.DeviceToken = header(TokenHeader)
	}
	if !slices.Contains(e.Doc.Headers, DeviceHeader) {
		return nil
	}
	id := header(DeviceHeader)
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > MaxDeviceID || strings.ContainsFunc(id, hidden) {
		return apierr.Invalid(DeviceHeader, "invalid.device_id", apierr.Args{"Max": MaxDeviceID})
	}
	info.DeviceID = id
	return nil
}

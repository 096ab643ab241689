package app

import (
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v2"

	"kontor/licences"
)

// licencesPath is the address of the licences of the software in the executable, for all callers.
const licencesPath = "/licences"

// allLicences is the text at licencesPath, which is put together when it is first asked for.
var allLicences = sync.OnceValue(func() []byte { return []byte(string(licences.Kontor) + "\n" + licences.ThirdParty) })

// serveLicences answers a GET or HEAD request for the licences. Otherwise it does nothing and returns false.
func serveLicences(c *fiber.Ctx, path string) bool {
	if path != licencesPath {
		return false
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	c.Status(http.StatusOK).Response().SetBodyRaw(allLicences())
	return true
}

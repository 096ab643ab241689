package app

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kontor/licences"
)

// licencesPath is the address of the licences of the software in the executable, for all callers.
const licencesPath = "/licences"

// serveLicences answers a GET or HEAD request for the licences. Otherwise it does nothing and returns false.
func serveLicences(c *fiber.Ctx, path string) bool {
	if path != licencesPath {
		return false
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	c.Status(http.StatusOK).Response().SetBodyString(string(licences.Kontor) + "\n" + licences.ThirdParty)
	return true
}

package server

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Names of headers that every request has or may have, as the engine stores them: it need not convert these again.
var (
	nameAcceptEncoding  = canonical(fiber.HeaderAcceptEncoding)
	nameAuthorization   = canonical(fiber.HeaderAuthorization)
	nameAPIKey          = canonical(apiKeyHeader)
	nameCacheControl    = canonical(fiber.HeaderCacheControl)
	nameContentLanguage = canonical(fiber.HeaderContentLanguage)
	nameCookie          = canonical(fiber.HeaderCookie)
	nameETag            = canonical(fiber.HeaderETag)
	nameOrigin          = canonical(fiber.HeaderOrigin)
	nameReferrerPolicy  = canonical(fiber.HeaderReferrerPolicy)
	nameRequestID       = canonical(fiber.HeaderXRequestID)
	nameTypeOptions     = canonical(fiber.HeaderXContentTypeOptions)
	valueNoReferrer     = []byte("no-referrer")
	valueNoSniff        = []byte("nosniff")
	valueNoStore        = []byte("no-store")
	valueJSON           = []byte(fiber.MIMEApplicationJSON)
)

func canonical(name string) []byte { return fasthttp.AppendNormalizedHeaderKey(nil, name) }

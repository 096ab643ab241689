package profile

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

// avatarPath is the path of pictures; the name of the file follows.
const avatarPath = "/v1/avatars/"

// picture is one size of a user's picture.
type picture struct {
	pixels    int64 // width and height
	mediaType string
	token     string
	content   []byte
}

// extensions are the file extensions by media type.
var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png"}

// file returns the last part of the URL of the picture.
func (p picture) file() string { return p.token + extensions[p.mediaType] }

// avatarOf returns the URLs of a user's pictures, the large one first.
func avatarOf(pictures []picture) Avatar {
	large, small := pictures[0], pictures[len(pictures)-1]
	return Avatar{URL: avatarPath + large.file(), ThumbnailURL: avatarPath + small.file(), token: large.token}
}

// serve serves a picture. The content of a URL never changes, so clients may cache it for good. Shared caches must not keep it:
// it may be removed. A restrictive content security policy protects readers who open the URL as a page.
func (s *Service) serve(ctx context.Context, r *endpoint.Request) error {
	file := r.Params[0]
	token := file
	for _, extension := range extensions {
		if cut := len(file) - len(extension); cut > 0 && file[cut:] == extension {
			token = file[:cut]
		}
	}
	_, known := etag.NoneMatch(string(r.Fiber.Request().Header.Peek(fiber.HeaderIfNoneMatch)), token)
	read := selectPicture
	if known {
		read = selectMedia
	}
	p, err := read(ctx, s.db, token)
	if err != nil {
		return err
	}
	if p.file() != file {
		return apierr.AvatarNotFound
	}
	response := r.Fiber.Response()
	response.Header.Set(fiber.HeaderETag, `"`+p.token+`"`)
	response.Header.Set(fiber.HeaderCacheControl, "private, max-age=31536000, immutable")
	response.Header.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	response.Header.Set(fiber.HeaderContentDisposition, `inline; filename="avatar`+extensions[p.mediaType]+`"`)
	if known {
		response.SetStatusCode(http.StatusNotModified)
		return nil
	}
	response.Header.SetContentType(p.mediaType)
	response.SetBody(p.content)
	return nil
}

package profile

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// avatarPath is where pictures are served; the name of the file follows.
const avatarPath = "/v1/avatars/"

// picture is one size of a user's picture.
type picture struct {
	pixels    int64 // width and height
	mediaType string
	token     string
	content   []byte
}

// extensions of the types that are served.
var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png"}

// file is the name under which the picture is served.
func (p picture) file() string { return p.token + extensions[p.mediaType] }

// avatarOf gives the addresses of a user's pictures, the large one first.
func avatarOf(pictures []picture) Avatar {
	large, small := pictures[0], pictures[len(pictures)-1]
	return Avatar{URL: avatarPath + large.file(), ThumbnailURL: avatarPath + small.file(), token: large.token}
}

// serve gives a picture to whoever knows its address. What is at an address never changes, so that it may be kept for
// good; by the one who asked, because a picture that is removed should not live on in a cache for all. Opened as a page
// it may do nothing.
func (s *Service) serve(ctx context.Context, r *endpoint.Request) error {
	file := r.Params[0]
	token := file
	for _, extension := range extensions {
		if cut := len(file) - len(extension); cut > 0 && file[cut:] == extension {
			token = file[:cut]
		}
	}
	known := endpoint.NoneMatch(string(r.Fiber.Request().Header.Peek(fiber.HeaderIfNoneMatch)), token)
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

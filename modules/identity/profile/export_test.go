package profile

import "context"

// NewForRendering returns a service without a database that can render.
func NewForRendering(maxPixels int64) *Service {
	return New(nil, nil, Options{MaxPixels: maxPixels})
}

// Render returns the encoded pictures.
func (s *Service) Render(file []byte) ([][]byte, error) {
	pictures, err := s.render(context.Background(), file)
	encoded := make([][]byte, len(pictures))
	for i, p := range pictures {
		encoded[i] = p.content
	}
	return encoded, err
}

// FilePart returns the file in a form.
func FilePart(contentType string, body []byte, limit int64) ([]byte, error) {
	return filePart(contentType, body, limit)
}

// Acquire waits until a picture may be decoded.
func (s *Service) Acquire(ctx context.Context, pixels int64) (release func(), err error) {
	return s.decodeLimit.acquire(ctx, "", pixels)
}

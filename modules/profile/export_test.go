package profile

import "context"

// NewForDrawing makes a service that can draw, without a database.
func NewForDrawing(maxPixels int64) *Service {
	return New(nil, nil, Options{MaxPixels: maxPixels})
}

// Draw gives the encoded pictures.
func (s *Service) Draw(file []byte) ([][]byte, error) {
	pictures, err := s.draw(context.Background(), file)
	encoded := make([][]byte, len(pictures))
	for i, p := range pictures {
		encoded[i] = p.content
	}
	return encoded, err
}

// FilePart finds the file in a form.
func FilePart(contentType string, body []byte, limit int64) ([]byte, error) {
	return filePart(contentType, body, limit)
}

// Enter takes room for a picture.
func (s *Service) Enter(ctx context.Context, pixels int64) (leave func(), err error) {
	return s.slots.enter(ctx, "", pixels)
}

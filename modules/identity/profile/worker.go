package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kontor/modules/kit/exif"
	"kontor/modules/kit/sandbox"
	"kontor/server/apierr"
)

// pictureWorker is the kind of the worker processes that decode and render pictures. See package sandbox.
const pictureWorker = "avatar"

// A process that was started as a worker does not return from here.
func init() {
	sandbox.Serve(pictureWorker, func([]string) (sandbox.Work, error) { return work, nil })
}

// workerRequest is sent to a worker with a file whose header is within the limits.
type workerRequest struct {
	Format      format
	Orientation exif.Orientation
}

// renderedPicture is a picture in the answer of a worker.
type renderedPicture struct {
	Pixels    int64
	MediaType string
	Content   []byte
}

const (
	drawCPU  = 10 * time.Second // a picture of the largest size takes two seconds
	drawTime = 20 * time.Second // by the clock, on a busy machine

	// Memory of a worker: the program, and for each pixel the decoder's memory and the plain bitmap.
	baseMemory  = 256 << 20
	pixelMemory = 20

	residentAfterFile = 96 << 20
	maxAnswer         = 8 << 20 // two PNG pictures
)

func newPool(maxPixels int64) *sandbox.Pool {
	return sandbox.NewPool(sandbox.Config{Kind: pictureWorker, Memory: baseMemory + pixelMemory*maxPixels,
		Resident: residentAfterFile, MaxAnswer: maxAnswer})
}

// work renders the pictures in a worker process. The answer is empty for a damaged file.
func work(request, file []byte, _ func([]byte) error) ([]byte, error) {
	var o workerRequest
	if err := json.Unmarshal(request, &o); err != nil {
		return nil, fmt.Errorf("request of a picture worker: %w", err)
	}
	defer sandbox.LimitCPU(drawCPU)()
	pictures, err := renderAll(file, o)
	if err != nil {
		return nil, nil
	}
	return json.Marshal(pictures)
}

var errDamaged = errors.New("the worker could not decode the picture")

// renderInWorker renders the pictures in a worker process. It returns apierr.InvalidImage for a file that cannot be decoded
// within the limits, and apierr.Unavailable if there is no worker.
func (s *Service) renderInWorker(ctx context.Context, file []byte, o workerRequest) ([]picture, error) {
	request, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("request of a picture worker: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	lease, err := s.pool.Acquire(limited)
	if err != nil {
		return nil, unavailable(err)
	}
	answer, err := lease.Run(limited, request, file, func([]byte) error { return errDamaged })
	if crash, ok := errors.AsType[*sandbox.CrashError](err); ok && crash.Failure == sandbox.Killed || ctx.Err() != nil {
		return nil, unavailable(err)
	}
	if err != nil || len(answer) == 0 {
		return nil, invalidImage(errors.Join(errDamaged, err), "profile.damaged")
	}
	return picturesOf(answer)
}

func unavailable(cause error) error {
	return &apierr.Error{Kind: apierr.Unavailable, Cause: cause, Retry: retryDraw}
}

// picturesOf reads the answer of a worker. One that was taken over by a file may send anything; but nothing is served
// that is not a picture of its type.
func picturesOf(answer []byte) ([]picture, error) {
	var all []renderedPicture
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, invalidImage(err, "profile.damaged")
	}
	var pictures []picture
	for _, d := range all {
		if f := formatOf(d.Content); f == "" || d.MediaType != "image/"+string(f) {
			return nil, invalidImage(errDamaged, "profile.damaged")
		}
		pictures = append(pictures, picture{pixels: d.Pixels, mediaType: d.MediaType, content: d.Content})
	}
	if len(pictures) != 2 || pictures[0].pixels != largePixels || pictures[1].pixels != smallPixels {
		return nil, invalidImage(errDamaged, "profile.damaged")
	}
	return pictures, nil
}

//go:build linux

package sse

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// BenchmarkPublish writes frames to 2,000 streams of as many users over TCP, each event to one user or to all, in rounds of one
// frame for each stream. Clients are read in the same process, so the figures contain both ends.
func BenchmarkPublish(b *testing.B) {
	const streams = 2000
	for _, users := range []int{1, streams} {
		b.Run(fmt.Sprintf("users=%d", users), func(b *testing.B) {
			p := newPolled(b)
			names := make([]string, streams)
			var reading sync.WaitGroup
			var round sync.WaitGroup
			frame := make([]byte, 512)
			for i := range names {
				names[i] = fmt.Sprint("user ", i)
				server, client := pair(b)
				p.attach(names[i], server)
				reading.Go(func() {
					buffer := make([]byte, len(frame))
					for {
						if _, err := io.ReadFull(client, buffer); err != nil {
							return
						}
						round.Done()
					}
				})
			}
			at := int64(0)
			for b.Loop() {
				round.Add(streams)
				for i := 0; i < streams; i += streams / users {
					at++
					p.Publish(names[i:i+streams/users], func(int, *Stream) Frame {
						return Frame{Position: Position{At: at, ID: "id"}, Own: frame[:100], Shared: frame[100:]}
					})
				}
				round.Wait()
			}
			b.ReportMetric(float64(b.N)*streams/b.Elapsed().Seconds(), "frames/s")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/streams/float64(time.Microsecond), "us/frame")
			p.Close()
			reading.Wait()
		})
	}
}

package qrbill

import (
	"context"
	"os"
	"runtime/pprof"
	"testing"
	"time"
)

func TestDbg(t *testing.T) {
	r := NewReader(Config{CacheDir: "/tmp/qr/cache"})
	w, _ := os.ReadFile("/work/shared/qr-corpus/files/pdf-vector-b00-00.pdf")
	r.Read(context.Background(), w, Options{})
	b, _ := os.ReadFile(os.Getenv("F"))
	f, _ := os.Create("/tmp/qr/cpu.prof")
	pprof.StartCPUProfile(f)
	s := time.Now()
	src, err := r.open(context.Background(), b)
	t.Log("open", time.Since(s), err)
	if err == nil {
		g, err := src.page(context.Background(), 0, false)
		t.Log("page", time.Since(s), g != nil, err)
		src.close()
		t.Log("close", time.Since(s))
	}
	s = time.Now()
	_, err = r.Read(context.Background(), b, Options{})
	t.Log("read", time.Since(s), err)
	pprof.StopCPUProfile()
}

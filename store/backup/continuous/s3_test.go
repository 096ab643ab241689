package continuous_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"kontor/store/backup/continuous"
	"kontor/store/storetest"
)

const (
	accessKey = "test-access"
	secretKey = "test-secret-of-twenty-letters"
	bucket    = "vault"
)

// s3Server is an S3 server (versitygw) that keeps its objects in a directory.
type s3Server struct {
	program, dir, address string
	running               *exec.Cmd
}

// startS3 builds and starts a server with one bucket. It skips the test where the program cannot be built.
func startS3(t *testing.T) *s3Server {
	t.Helper()
	dir := t.TempDir()
	s := &s3Server{program: filepath.Join(dir, "versitygw"), dir: dir, address: freeAddress(t)}
	build := exec.Command("go", "build", "-C", "../../../.ci/s3", "-o", s.program, "github.com/versity/versitygw/cmd/versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("run \"go mod download\" in .ci/s3 to test with an S3 server: %v\n%s", err, out)
	}
	for _, name := range []string{"objects", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	client, err := minio.New(s.address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *s3Server) start(t *testing.T) {
	t.Helper()
	s.running = exec.Command(s.program, "--port", s.address, "--access", accessKey, "--secret", secretKey, "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "metadata"), filepath.Join(s.dir, "objects"))
	s.running.Stdout, s.running.Stderr = t.Output(), t.Output()
	if err := s.running.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		if answer, err := http.Get("http://" + s.address + "/"); err == nil {
			answer.Body.Close()
			return
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			t.Fatal("the S3 server does not answer")
		}
	}
}

func (s *s3Server) stop(t *testing.T) {
	t.Helper()
	if s.running == nil {
		return
	}
	if err := s.running.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.running.Wait() // it was killed
	s.running = nil
}

func (s *s3Server) target(t *testing.T) continuous.Target {
	t.Helper()
	target, err := continuous.Open(fmt.Sprintf("s3://%s/banks/one?endpoint=http://%s&region=us-east-1", bucket, s.address))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestS3 ships to a server and restores from there. While the server is away nothing is lost.
func TestS3(t *testing.T) {
	server := startS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	s := newShipping(t, server.target(t))
	first, wantFirst := s.write(t, 100)
	s.write(t, 100)

	server.stop(t)
	storetest.Audit(t, s.db, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	if err := s.Ship(ctx); err == nil {
		t.Error("shipped to a server that is away")
	}
	cancel()
	server.start(t)
	_, want := s.write(t, 1)
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
	if got, err := s.restore(t, first); err != nil || got != wantFirst {
		t.Errorf("the first state: %d entries, %v; want %d", got, err, wantFirst)
	}

	large := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // more than one part of an upload
	put(t, s.target, "large", large)
	if got := contentOf(t, s.target, "large"); !bytes.Equal(got, large) {
		t.Errorf("%d bytes came back of %d", len(got), len(large))
	}
	for range 2 { // the second time it is missing
		if err := s.target.Delete(t.Context(), "large"); err != nil {
			t.Error(err)
		}
	}
	if in, err := s.target.Get(t.Context(), "large"); err == nil {
		if _, err := io.ReadAll(in); err == nil {
			t.Error("a deleted object was read")
		}
	}

	t.Setenv("AWS_SECRET_ACCESS_KEY", "another-secret-of-twenty")
	if _, err := continuous.Look(t.Context(), server.target(t), ""); err == nil {
		t.Error("listed with a wrong secret")
	}
}

package profile_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// addresses returns the URLs of the pictures in the answer to an upload.
func addresses(t *testing.T, answer servertest.Response) []string {
	t.Helper()
	got := answer.Expect(t, http.StatusOK).JSON(t)
	return []string{got["url"].(string), got["thumbnail_url"].(string)}
}

func TestAvatar_IsServedWithSafeAndCacheableHeaders(t *testing.T) {
	s := servertest.Start(t)
	address := addresses(t, upload(t, s.User(access.Customer), asPNG(t, upright(20))))[0]
	if !strings.HasPrefix(address, "/v1/avatars/") || len(address) < len("/v1/avatars/")+26+len(".jpg") {
		t.Errorf("the address is %s", address)
	}
	answer := s.Anonymous().Do("GET", address, nil).Expect(t, http.StatusOK)
	for header, want := range map[string]string{"Content-Type": "image/jpeg", "Cache-Control": "private, max-age=31536000, immutable",
		"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `inline; filename="avatar.jpg"`} {
		if got := answer.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	etag := answer.Header.Get("ETag")
	if again := s.Anonymous().With("If-None-Match", etag).Do("GET", address, nil); etag == "" || again.Status != http.StatusNotModified || again.Body != "" {
		t.Errorf("with %s: got %d with %d bytes, want 304", etag, again.Status, len(again.Body))
	}
	if head := s.Anonymous().Do("HEAD", address, nil); head.Status != http.StatusOK || head.Header.Get("Content-Length") != fmt.Sprint(len(answer.Body)) {
		t.Errorf("HEAD: got %d %v", head.Status, head.Header)
	}
	for _, wrong := range []string{strings.TrimSuffix(address, ".jpg"), strings.Replace(address, ".jpg", ".png", 1), "/v1/avatars/.jpg",
		"/v1/avatars/" + strings.Repeat("A", 26) + ".jpg", strings.ToLower(address)} {
		missing := s.Anonymous().With("If-None-Match", etag).Do("GET", wrong, nil)
		if missing.Status != 404 || missing.JSON(t)["code"] != "profile.avatar_not_found" || missing.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %s", wrong, missing.Status, missing.Body)
		}
	}
}

// count returns the number of stored pictures.
func count(t *testing.T, s *servertest.Server) (n int) {
	t.Helper()
	if err := s.DB.QueryRow(context.Background(), "SELECT COUNT(*) FROM avatars").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAvatar_IsReplacedAndRemovedCompletely(t *testing.T) {
	s := servertest.Start(t)
	user, other := s.User(access.Customer), s.User(access.Advisor)
	pic := asPNG(t, upright(20))
	kept := addresses(t, upload(t, other, pic))
	first := addresses(t, upload(t, user, pic))
	second := addresses(t, upload(t, user, pic))
	if slices.Equal(first, second) || count(t, s) != 4 {
		t.Errorf("%v after %v, %d pictures", second, first, count(t, s))
	}
	for _, old := range first {
		s.Anonymous().Do("GET", old, nil).Expect(t, http.StatusNotFound)
	}
	profile := user.Do("GET", "/v1/profile", nil).Expect(t, http.StatusOK)
	if !strings.Contains(profile.Body, fmt.Sprintf(`"avatar":{"url":%q,"thumbnail_url":%q}`, second[0], second[1])) {
		t.Errorf("the profile is %s, want %v", profile.Body, second)
	}
	user.With("If-None-Match", profile.Header.Get("ETag")).Do("GET", "/v1/profile", nil).Expect(t, http.StatusNotModified)
	if removed := user.With("Accept-Language", "fr").Do("DELETE", "/v1/profile/avatar", nil).Expect(t, http.StatusOK); removed.Body != `{"message":"L’image a été supprimée."}` {
		t.Errorf("got %s", removed.Body)
	}
	s.Anonymous().Do("GET", second[0], nil).Expect(t, http.StatusNotFound)
	s.Anonymous().Do("GET", kept[0], nil).Expect(t, http.StatusOK)
	if answer := user.Do("DELETE", "/v1/profile/avatar", nil); answer.Status != 404 || answer.JSON(t)["code"] != "profile.avatar_not_found" {
		t.Errorf("a second removal: got %d %s", answer.Status, answer.Body)
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.rec_id="+user.UserID+"&search.rec_type=profiles", nil).JSON(t)
	if trail["total"] != 3.0 {
		t.Errorf("the audit trail has %v entries, want 3", trail["total"])
	}
}

func TestAvatar_IsOneAfterParallelUploads(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	pic := asPNG(t, upright(20))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { upload(t, user, pic) })
	}
	wait.Wait()
	got := user.Do("GET", "/v1/profile", nil).Expect(t, http.StatusOK).JSON(t)["avatar"].(map[string]any)
	s.Anonymous().Do("GET", got["url"].(string), nil).Expect(t, http.StatusOK)
	s.Anonymous().Do("GET", got["thumbnail_url"].(string), nil).Expect(t, http.StatusOK)
	if count(t, s) != 2 {
		t.Errorf("%d pictures are stored, want 2", count(t, s))
	}
}

package factors

import (
	"encoding/base32"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"kontor/store/testenv"
)

// rfcSecret is the SHA-1 secret of RFC 6238, appendix B: "12345678901234567890".
const rfcSecret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

// The vectors of RFC 6238, appendix B, for SHA-1. Codes of six digits are the last six of the eight there.
func TestTOTP_VectorsOfRFC6238(t *testing.T) {
	for seconds, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		at := time.Unix(seconds, 0)
		got, err := codeAt(rfcSecret, stepAt(at))
		if err != nil || got != want[2:] {
			t.Errorf("%d: got %s, %v, want %s", seconds, got, err, want[2:])
		}
		if step, ok := matchStep(rfcSecret, want[2:], at); !ok || step != seconds/30 {
			t.Errorf("%d: matched step %d, %t, want %d", seconds, step, ok, seconds/30)
		}
	}
}

func TestTOTP_AcceptsOneStepAround(t *testing.T) {
	now := time.Unix(1234567890, 0)
	for offset := int64(-3); offset <= 3; offset++ {
		code, err := codeAt(rfcSecret, stepAt(now)+offset)
		if err != nil {
			t.Fatal(err)
		}
		step, ok := matchStep(rfcSecret, code, now)
		if want := offset >= -1 && offset <= 1; ok != want || ok && step != stepAt(now)+offset {
			t.Errorf("the code of step %+d: got %d, %t, want %t", offset, step-stepAt(now), ok, want)
		}
	}
	if _, ok := matchStep(rfcSecret, "287082", time.Unix(-100, 0)); ok {
		t.Error("a time before 1970 has a code")
	}
}

func TestTOTP_ReadsOnlySixDigits(t *testing.T) {
	now := time.Unix(59, 0)
	for typed, want := range map[string]bool{
		"287082": true, "287 082": true, " 287082 ": true, "": false, "28708": false, "2870820": false, "28708a": false, "２８７０８２": false,
		"287082\x00": false, "-87082": false, "+287082": false, "28 70 82 ": true, strings.Repeat(" ", 20) + "287082": false, "287-082": false,
	} {
		if _, ok := matchStep(rfcSecret, typed, now); ok != want {
			t.Errorf("%q: got %t, want %t", typed, ok, want)
		}
	}
}

func TestTOTP_SecretsAreLongAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		secret := newSecret()
		raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
		if err != nil || len(raw) != 20 || seen[secret] {
			t.Fatalf("secret %q: %d bytes, %v, seen %t", secret, len(raw), err, seen[secret])
		}
		seen[secret] = true
	}
}

// An independent program computes the same codes from the secret.
func TestTOTP_AgreesWithOathtool(t *testing.T) {
	testenv.Need(t, testenv.Full)
	oathtool := testenv.Tool(t, "oathtool")
	for _, seconds := range []int64{0, 59, 1111111111, 1763800000, 4102444800} {
		secret := newSecret()
		out, err := exec.CommandContext(t.Context(), oathtool, "--totp", "--base32", "--now", fmt.Sprintf("@%d", seconds), secret).Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := matchStep(secret, strings.TrimSpace(string(out)), time.Unix(seconds, 0)); !ok {
			t.Errorf("%d: the code %s of oathtool is rejected", seconds, out)
		}
	}
}

func TestTOTP_URIAndPictureCarryTheSecret(t *testing.T) {
	const issuer, account = "Bank & Söhne AG", "anna+bank/1@example.ch"
	text := totpURI(issuer, account, rfcSecret)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/"+issuer+":"+account {
		t.Fatalf("%s: %+v, %v", text, u, err)
	}
	for name, want := range map[string]string{"secret": rfcSecret, "issuer": issuer, "algorithm": "SHA1", "digits": "6", "period": "30"} {
		if got := u.Query()[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %s", name, got, want)
		}
	}
	if strings.Contains(text, "+") {
		t.Errorf("%s has a plus sign, which some apps show", text)
	}
	svg, err := qrSVG(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := readSVG(t, svg); got != text {
		t.Errorf("the QR code says %q, want %q", got, text)
	}
}

// readSVG paints the squares of a picture and reads the QR code in it.
func readSVG(t *testing.T, svg string) string {
	t.Helper()
	var size int
	if _, err := fmt.Sscanf(svg[strings.Index(svg, "viewBox="):], `viewBox="0 0 %d`, &size); err != nil {
		t.Fatal(err)
	}
	bits, err := gozxing.NewBitMatrix(size*4, size*4)
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(svg, `<path d="`)
	path, rest, _ := strings.Cut(path, `"`)
	if rest != "/></svg>" {
		t.Fatalf("the picture ends with %q", rest)
	}
	for _, square := range strings.Split(strings.TrimSuffix(path, "z"), "z") {
		var x, y, run int
		if _, err := fmt.Sscanf(square, "M%d %dh%dv1", &x, &y, &run); err != nil {
			t.Fatalf("%q: %v", square, err)
		}
		if err := bits.SetRegion(x*4, y*4, run*4, 4); err != nil {
			t.Fatal(err)
		}
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmapOf(t, bits), map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	if err != nil {
		t.Fatal(err)
	}
	return result.GetText()
}

func bitmapOf(t *testing.T, bits *gozxing.BitMatrix) *gozxing.BinaryBitmap {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(bits)
	if err != nil {
		t.Fatal(err)
	}
	return bitmap
}

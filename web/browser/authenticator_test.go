package browser_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"image/png"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// authenticator is a virtual authenticator of a visitor's browser, such as the fingerprint reader of a laptop.
type authenticator struct {
	v  *visitor
	id webauthn.AuthenticatorID
}

// withAuthenticator adds an authenticator to the visitor's browser. Its user touches it at once and is verified. Without a
// window, chromium does not show the suggestions of the sign-in form: it uses the first passkey. So they are switched off.
func (v *visitor) withAuthenticator() *authenticator {
	v.t.Helper()
	const withoutSuggestions = `PublicKeyCredential.isConditionalMediationAvailable = async () => false`
	v.eval(withoutSuggestions)
	v.prepare(withoutSuggestions)
	return v.withSuggestedPasskeys()
}

// withSuggestedPasskeys adds an authenticator whose passkeys the browser suggests in the sign-in form.
func (v *visitor) withSuggestedPasskeys() *authenticator {
	v.t.Helper()
	a := &authenticator{v: v}
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		if _, err := cdp.Call(ctx, tab, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		added, err := cdp.Call(ctx, tab, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}})
		a.id = added.AuthenticatorID
		return chromedp.Void{}, err
	})
	return a
}

// forget removes all passkeys from the authenticator, as if it were another device.
func (a *authenticator) forget() {
	a.v.t.Helper()
	a.v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, webauthn.ClearCredentials, webauthn.ClearCredentialsParams{AuthenticatorID: a.id})
		return chromedp.Void{}, err
	})
}

// verifyUser sets whether the authenticator recognises its user, for example by fingerprint.
func (a *authenticator) verifyUser(ok bool) {
	a.v.t.Helper()
	a.v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.id, IsUserVerified: ok})
		return chromedp.Void{}, err
	})
}

// totp computes the codes of an authenticator app (RFC 6238).
type totp struct {
	t      *testing.T
	secret []byte
}

// newTOTP returns an app with the secret of a setup key.
func newTOTP(t *testing.T, key string) totp {
	t.Helper()
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	return totp{t, secret}
}

// code returns the code that the app shows now, or some periods of 30 seconds later. The server accepts the codes of one period
// before and one after its own, so that a period may end before the code is sent.
func (o totp) code(periods int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(time.Now().Unix()/30+periods))
	mac := hmac.New(sha1.New, o.secret)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:])&0x7fffffff%1_000_000)
}

// scan returns the text of a QR code on the page, as a camera reads it.
func (v *visitor) scan(selector string) string {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.ScreenshotScale(chromedp.CSS(selector), 3, chromedp.NodeVisible))
	if err != nil {
		v.t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		v.t.Fatal(err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(decoded)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, hint := range []gozxing.DecodeHintType{gozxing.DecodeHintType_PURE_BARCODE, gozxing.DecodeHintType_TRY_HARDER} {
		found, decodeErr := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{hint: true})
		if decodeErr == nil {
			return found.GetText()
		}
		err = decodeErr
	}
	v.t.Fatalf("the QR code is not readable: %v", err)
	return ""
}

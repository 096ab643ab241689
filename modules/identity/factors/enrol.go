package factors

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Enrolled is a new factor with what its authenticator needs. It is shown once.
type Enrolled struct {
	Factor
	TOTP          *TOTPEnrolment    `json:"totp,omitzero" doc:"Only for an authenticator app."`
	Passkey       *PasskeyEnrolment `json:"passkey,omitzero" example:"-" doc:"Only for a passkey."`
	RecoveryCodes []string          `json:"recovery_codes,omitzero" example:"-" doc:"Each works once. They are not shown again."`
}

// TOTPEnrolment is what an authenticator app needs.
type TOTPEnrolment struct {
	Secret string `json:"secret" example:"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP" doc:"The secret in base32, to type."`
	URI    string `json:"uri" format:"uri" example:"otpauth://totp/Kontor:anna.keller%40example.ch?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Kontor" doc:"The same for apps on this device."`
	QRSVG  string `json:"qr_svg" example:"<svg/>" doc:"The same as a QR code, a picture in SVG."`
}

// PasskeyEnrolment is what a browser needs to create a passkey.
type PasskeyEnrolment struct {
	Options jsontext.Value `json:"options" type:"object" doc:"For PublicKeyCredential.parseCreationOptionsFromJSON."`
	Token   string         `json:"token" doc:"For the confirmation. It is valid for five minutes and one attempt."`
}

// enrol begins the enrolment of a factor of the caller, or replaces their recovery codes. It returns apierr.UserNotFound,
// apierr.NoAccess for another user, apierr.FactorRequired as requireOwn does, what signin.Rule.Prove returns, and what its three
// kinds return.
func (s *Service) enrol(ctx context.Context, in enrolInput) (Enrolled, error) {
	if err := s.findUser(ctx, []string{in.UserID}, nil); err != nil {
		return Enrolled{}, err
	}
	if err := s.auth.Prove(ctx, in.Proof); err != nil {
		return Enrolled{}, err
	}
	f := newFactor{Factor: Factor{ID: store.NewID(), UserID: in.UserID, Type: in.Type, Name: in.Name, Status: pending, version: 1},
		createdBy: in.UserID, session: access.From(ctx).SessionID}
	switch in.Type {
	case factor.TOTP:
		return s.enrolTOTP(ctx, f)
	case factor.Passkey:
		return s.enrolPasskey(ctx, f)
	default:
		return s.replaceCodes(ctx, f)
	}
}

// findUser returns nil for the caller's own user. Not even administrators enrol a factor for another user: they could sign in as that
// user.
func (s *Service) findUser(ctx context.Context, ids []string, _ any) error {
	if err := requireOwn(ctx, ids[0]); err != nil {
		return err
	}
	if _, err := userStatus(ctx, s.db, ids[0]); err != nil {
		return err
	}
	if access.From(ctx).UserID != ids[0] {
		return apierr.NoAccess
	}
	return nil
}

// enrolTOTP makes a secret. It returns apierr.TooManyFactors and apierr.FactorNameExists.
func (s *Service) enrolTOTP(ctx context.Context, f newFactor) (Enrolled, error) {
	a, err := s.account(ctx, s.db, f.UserID)
	if err != nil {
		return Enrolled{}, err
	}
	made := TOTPEnrolment{Secret: newSecret()}
	made.URI = totpURI(s.options.Issuer, a.name, made.Secret)
	if made.QRSVG, err = qrSVG(made.URI); err != nil {
		return Enrolled{}, err
	}
	if f.secret, err = s.db.Seal(factorsTable, secretColumn, f.ID, []byte(made.Secret)); err != nil {
		return Enrolled{}, err
	}
	enrolled := Enrolled{TOTP: &made}
	err = s.db.InTx(ctx, func(tx *store.Tx) error { return s.begin(ctx, tx, f, &enrolled) })
	return enrolled, err
}

// enrolPasskey makes the options for the user's browser. It returns apierr.PasskeysUnavailable, apierr.TooManyFactors and
// apierr.FactorNameExists.
func (s *Service) enrolPasskey(ctx context.Context, f newFactor) (Enrolled, error) {
	if s.party == nil {
		return Enrolled{}, apierr.PasskeysUnavailable
	}
	a, err := s.account(ctx, s.db, f.UserID)
	if err != nil {
		return Enrolled{}, err
	}
	var made PasskeyEnrolment
	options, kept, err := s.party.beginEnrolment(a, f.ID)
	if err != nil {
		return Enrolled{}, err
	}
	made.Options = options
	token, keep, err := s.auth.NewChallenge(ctx, f.UserID, kept)
	if err != nil {
		return Enrolled{}, err
	}
	made.Token = token
	enrolled := Enrolled{Passkey: &made}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := keep(ctx, tx); err != nil {
			return err
		}
		return s.begin(ctx, tx, f, &enrolled)
	})
	return enrolled, err
}

// begin stores a pending factor. It replaces one of the same type, because a person who begins again has given up before.
func (s *Service) begin(ctx context.Context, tx *store.Tx, f newFactor, enrolled *Enrolled) error {
	all, err := ofUser(ctx, tx, f.UserID)
	if err != nil {
		return err
	}
	kept, counted := all[:0], 0
	for _, other := range all {
		switch {
		case other.Status == pending && (other.Type == f.Type || tx.Now() >= other.CreatedAt.Add(enrolmentLife)):
			if err := s.delete(ctx, tx, other.ID, f.UserID, "factors.expire"); err != nil {
				return err
			}
			continue
		case other.Type == f.Type:
			counted++
		}
		kept = append(kept, other)
	}
	if limit := most[f.Type]; counted >= limit {
		return apierr.TooManyFactors.With(apierr.Args{"Max": limit})
	}
	if f.Name, err = s.nameFor(ctx, f.Factor, kept); err != nil {
		return err
	}
	if err := s.insert(ctx, tx, &f, "factors.enrol"); err != nil {
		return err
	}
	enrolled.Factor = f.Factor
	tx.Respond(*enrolled)
	return nil
}

func (s *Service) insert(ctx context.Context, tx *store.Tx, f *newFactor, action string) error {
	f.CreatedAt = tx.Now()
	if err := insert(ctx, tx, *f); err != nil {
		return err
	}
	return auditNew(ctx, tx, action, f.createdBy, f.ID)
}

// replaceCodes makes new recovery codes; the old ones end. It returns apierr.NoSecondFactor for a user who has no factor for
// which they could stand in, and apierr.OlderMethodKept.
func (s *Service) replaceCodes(ctx context.Context, f newFactor) (Enrolled, error) {
	enrolled := Enrolled{RecoveryCodes: newCodes()}
	undo, keepUndo := s.auth.NewUndo(signin.Factor, f.UserID, f.ID)
	notification := s.added(ctx, f.UserID, "recovery_codes_replaced", undo)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		all, err := ofUser(ctx, tx, f.UserID)
		if err != nil {
			return err
		}
		kept, protects := all[:0], false
		for _, other := range all {
			if other.Type == RecoveryCodes {
				if err := s.checkRemoval(ctx, tx, other); err != nil {
					return err
				}
				if err := s.delete(ctx, tx, other.ID, f.UserID, "factors.remove"); err != nil {
					return err
				}
				continue
			}
			protects = protects || isSecond(other)
			kept = append(kept, other)
		}
		if !protects {
			return apierr.NoSecondFactor
		}
		if f.Name, err = s.nameFor(ctx, f.Factor, kept); err != nil {
			return err
		}
		if enrolled.Factor, err = s.insertCodes(ctx, tx, f, enrolled.RecoveryCodes); err != nil {
			return err
		}
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		if err := s.notify.Notify(ctx, tx, notification); err != nil {
			return err
		}
		tx.Respond(enrolled)
		return nil
	})
	return enrolled, err
}

// insertCodes stores recovery codes. They need no confirmation.
func (s *Service) insertCodes(ctx context.Context, tx *store.Tx, f newFactor, codes []string) (Factor, error) {
	trusted := tx.Now().Add(signin.Trial)
	f.Status, f.session, f.CreatedAt, f.TrustedFrom = active, "", tx.Now(), &trusted
	if err := insert(ctx, tx, f); err != nil {
		return Factor{}, err
	}
	for _, shown := range codes {
		code, _ := parseCode(shown) // it was just made
		if _, err := tx.Exec(ctx, insertCode, f.ID, s.codeHash(f.ID, code)); err != nil {
			return Factor{}, err
		}
	}
	remaining := len(codes)
	f.Remaining = &remaining
	return f.Factor, auditNew(ctx, tx, "factors.enrol", f.createdBy, f.ID)
}

// nameFor returns the name of a new factor: the chosen one, or a name for its type with a number if needed. It returns
// apierr.FactorNameExists if another factor has the chosen name.
func (s *Service) nameFor(ctx context.Context, f Factor, others []Factor) (string, error) {
	taken := map[string]bool{}
	for _, other := range others {
		taken[types.Fold(other.Name)] = true
	}
	if f.Name != "" {
		if taken[types.Fold(f.Name)] {
			return "", apierr.FactorNameExists
		}
		return f.Name, nil
	}
	standard := s.texts.Text(endpoint.Language(ctx), "factors.name."+f.Type, nil)
	name := standard
	for n := 2; taken[types.Fold(name)]; n++ {
		name = standard + " " + strconv.Itoa(n)
	}
	return name, nil
}

// quietZone is the white border of a QR code in modules (ISO/IEC 18004).
const quietZone = 4

// qrSVG draws a text as a QR code. The picture has a white background, so that it can also be read on a dark page.
func qrSVG(text string) (string, error) {
	hints := map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_CHARACTER_SET: "UTF-8"}
	code, err := encoder.Encoder_encode(text, decoder.ErrorCorrectionLevel_M, hints)
	if err != nil {
		return "", fmt.Errorf("draw a QR code: %w", err)
	}
	m := code.GetMatrix()
	size := m.GetWidth() + 2*quietZone
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges">`, size, size)
	fmt.Fprintf(&b, `<path fill="#fff" d="M0 0h%dv%dH0z"/><path d="`, size, size)
	for y := range m.GetHeight() {
		for x := 0; x < m.GetWidth(); x++ {
			start := x
			for x < m.GetWidth() && m.Get(x, y) == 1 {
				x++
			}
			if run := x - start; run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", start+quietZone, y+quietZone, run, run)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.String(), nil
}

// The parameters of RFC 6238 that every authenticator app supports.
const (
	totpPeriod      = 30 * time.Second
	totpDigits      = 6
	totpSkew        = 1  // steps that the clock of a phone may be off
	totpSecretBytes = 20 // the length of a SHA-1 hash (RFC 4226, section 4)
)

var secretEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newSecret returns a random secret in base32.
func newSecret() string {
	var secret [totpSecretBytes]byte
	rand.Read(secret[:]) // does not fail: it would end the program
	return secretEncoding.EncodeToString(secret[:])
}

// stepAt returns the number of the time step of a moment.
func stepAt(at time.Time) int64 { return at.Unix() / int64(totpPeriod/time.Second) }

// stepMoment is the step of the last code that was used. That of the next step is accepted early.
var stepMoment = store.Moment{Table: factorsTable, Of: "(last_step - 1)", Moves: []string{"last_step"},
	Now: func(now store.Time) int64 { return stepAt(now.Std()) }}

// matchStep returns the time step around now whose code is the given one. It takes the same time for every code. ok is false
// for a wrong code.
func matchStep(secret, code string, now time.Time) (step int64, ok bool) {
	typed := []byte(parseTOTP(code))
	for s := stepAt(now) - totpSkew; s <= stepAt(now)+totpSkew; s++ {
		want, err := codeAt(secret, s)
		if err == nil && subtle.ConstantTimeCompare(typed, []byte(want)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// codeAt returns the code of a time step.
func codeAt(secret string, step int64) (string, error) {
	if step < 0 {
		return "", otp.ErrValidateInputInvalidLength
	}
	return hotp.GenerateCodeCustom(secret, uint64(step), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
}

// parseTOTP removes the spaces that apps show within a code. It returns an empty text for a text that cannot be a code.
func parseTOTP(typed string) string {
	const longest = 16
	if len(typed) > longest {
		return ""
	}
	code := strings.ReplaceAll(typed, " ", "")
	if len(code) != totpDigits || strings.Trim(code, "0123456789") != "" {
		return ""
	}
	return code
}

// totpURI returns the address that authenticator apps read from a QR code. Some apps show a plus sign as it is, so that
// spaces are written as %20.
func totpURI(issuer, account, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {strconv.Itoa(totpDigits)},
		"period": {strconv.Itoa(int(totpPeriod / time.Second))}}
	label := url.QueryEscape(issuer) + ":" + url.QueryEscape(account)
	return "otpauth://totp/" + strings.ReplaceAll(label+"?"+q.Encode(), "+", "%20")
}

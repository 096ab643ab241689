package factors_test

import (
	"testing"

	"kontor/server/servertest"
	"kontor/store/storetest"
)

// All factors work after the master key was replaced. Only a sign-in between its two steps must begin again.
func TestRotation_KeepsEveryFactor(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP().enrolPasskey()
	before := anna.first()
	for _, compromised := range []bool{false, true} {
		rotation := storetest.Rotation(t, b.DB)
		rotation.Compromised = compromised
		if _, err := b.DB.RotateMasterKey(t.Context(), rotation); err != nil {
			t.Fatal(err)
		}
	}
	b.second(before.Token, servertest.Body{"code": anna.code(0)}).ExpectError(t, 401, "auth_m.challenge_expired")
	b.second(anna.first().Token, servertest.Body{"code": anna.code(0)}).Expect(t, 200)
	b.second(anna.first().Token, servertest.Body{"recovery_code": anna.codes[0]}).Expect(t, 200)
	b.second(anna.first().Token, servertest.Body{"recovery_code": anna.codes[0]}).ExpectError(t, 401, "auth_m.invalid_factor")
	alone := b.withoutPassword()
	b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, nil)}).Expect(t, 200)
}

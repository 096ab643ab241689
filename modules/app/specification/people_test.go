package specification_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"mime/multipart"
	"regexp"
	"strings"
	"testing"

	"kontor/server/servertest"
)

const registration = `{"credential_type":"email","credential_value":"%s","password":"seven ducks cross a lake","terms_accepted":true,"privacy_policy_accepted":true}`

// register registers an address, and returns the caller with the token of the answer.
func (b *bank) register(t *testing.T, address string) {
	t.Helper()
	answer := b.send(t, do("key", "POST /v1/users/initiate-registration", strings.Replace(registration, "%s", address, 1), 201)).JSON(t)
	b.names["user"] = answer["user_id"].(string)
	b.names["credential"] = answer["credential"].(map[string]any)["id"].(string)
	b.callers["new"] = b.Anonymous().With("Authorization", "Bearer "+answer["access_token"].(string))
}

// code is the one-time code in the newest message to an address.
func (b *bank) code(t *testing.T, address string) string {
	t.Helper()
	messages := b.Messages(b.names["user"], address)
	if len(messages) == 0 {
		t.Fatalf("there is no message to %s", address)
	}
	return regexp.MustCompile(`\b[0-9]{6}\b`).FindString(messages[len(messages)-1])
}

func registers(t *testing.T, b *bank) {
	b.register(t, "new@example.ch")
	b.names["otp"] = b.code(t, "new@example.ch")
	steps(
		do("new", "PUT /v1/users/{user}/credentials/{credential}/validate", `{"otp":"000 000"}`, 400, `"users.invalid_otp"`),
		do("new", "PUT /v1/users/{user}/credentials/{credential}/validate", `{"otp":"{otp}"}`, 200, `"validated":true`),
		do("nobody", "POST /authenticate", `{"user_id":"new@example.ch","password":"seven ducks cross a lake"}`, 200),
	)(t, b)
}

// picture sends a picture, or other content, as an avatar.
func picture(t *testing.T, b *bank, member string, content []byte, status int, texts ...string) servertest.Response {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile(member, "me.png")
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.send(t, do("anna", "POST /v1/profile/avatar", form.String(), status, texts...).with("Content-Type", w.FormDataContentType()))
}

// encoded returns a small picture in a format.
func encoded(t *testing.T, format string) []byte {
	t.Helper()
	var content bytes.Buffer
	gray := image.NewPaletted(image.Rect(0, 0, 64, 64), color.Palette{color.White, color.Black})
	err := map[string]func() error{
		"png":  func() error { return png.Encode(&content, gray) },
		"jpeg": func() error { return jpeg.Encode(&content, gray, nil) },
		"gif":  func() error { return gif.Encode(&content, gray, nil) },
	}[format]()
	if err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

func avatarTypes(t *testing.T, b *bank) {
	for _, format := range []string{"png", "jpeg"} {
		answer := picture(t, b, "file", encoded(t, format), 200).JSON(t)
		hasMember(t, answer, "url string")
		hasMember(t, answer, "thumbnail_url string")
	}
	for _, content := range [][]byte{encoded(t, "gif"), []byte("no picture")} {
		body := picture(t, b, "file", content, 400, `"profile.invalid_file_type"`).JSON(t)
		if message := strings.ToLower(body["message"].(string)); !strings.Contains(message, "jpg") || !strings.Contains(message, "png") {
			t.Errorf("the message does not name the supported types: %s", message)
		}
	}
}

var people = []statement{
	{"Registers users by a credential (type and value) and password, validates credentials by one-time password, lists and deletes credentials.", registers},
	{"Registration input fields: `credential_type` (string), `credential_value` (string), `password` (string), `terms_accepted` (boolean)," +
		" `privacy_policy_accepted` (boolean).", steps(
		do("key", "POST /v1/users/initiate-registration", `{}`, 400, `"credential_type"`, `"credential_value"`, `"password"`, `"terms_accepted"`, `"privacy_policy_accepted"`),
		do("key", "POST /v1/users/initiate-registration", `{"credential_type":"email","credential_value":"t@example.ch","password":"seven ducks cross a lake",
			"terms_accepted":false,"privacy_policy_accepted":true}`, 400, `"terms_accepted"`))},
	{"| POST | /v1/users/initiate-registration | headers Content-Type, Accept-Language, X-API-Key;", func(t *testing.T, b *bank) {
		b.send(t, do("nobody", "POST /v1/users/initiate-registration", strings.Replace(registration, "%s", "k@example.ch", 1), 401))
		b.send(t, do("key", "POST /v1/users/initiate-registration", `{}`, 400, "erforderlich").with("Accept-Language", "de"))
		b.register(t, "lang@example.ch")
	}},
	{"| GET | /v1/users/{id}/credentials | bearer |", steps(do("anna", "GET /v1/users/{anna}/credentials", "", 200, `"type":"email"`),
		do("beat", "GET /v1/users/{anna}/credentials", "", 403), do("nobody", "GET /v1/users/{anna}/credentials", "", 401))},
	{"| PUT | /v1/users/{id}/credentials/{credential_id}/validate | bearer; body {otp: string} |", func(t *testing.T, b *bank) {
		b.register(t, "otp@example.ch")
		b.names["otp"] = b.code(t, "otp@example.ch")
		steps(do("nobody", "PUT /v1/users/{user}/credentials/{credential}/validate", `{"otp":"{otp}"}`, 401),
			do("anna", "PUT /v1/users/{user}/credentials/{credential}/validate", `{"otp":"{otp}"}`, 403),
			do("new", "PUT /v1/users/{user}/credentials/{credential}/validate", `{"otp":"{otp}"}`, 200))(t, b)
	}},
	{"| DELETE | /v1/users/credentials/{cred_id} | bearer; no body | error shape with code users.user_not_found", func(t *testing.T, b *bank) {
		steps(do("anna", "DELETE /v1/users/credentials/{unknown}", "", 404, `"users.user_not_found"`),
			do("anna", "POST /v1/users/{anna}/credentials", `{"credential_type":"username","credential_value":"anna.keller","password":"`+servertest.Password+`"}`, 201).
				keep("name", "id"),
			do("nobody", "DELETE /v1/users/credentials/{name}", "", 401),
			do("beat", "DELETE /v1/users/credentials/{name}", "", 403),
			do("anna", "DELETE /v1/users/credentials/{name}", "", 200, `"message"`),
			do("anna", "DELETE /v1/users/credentials/{name}", "", 404, `"users.user_not_found"`))(t, b)
	}},
	{"| 404 | users.user_not_found | user missing (shown for credential deletion) |", steps(
		do("anna", "DELETE /v1/users/credentials/{unknown}", "", 404, `"users.user_not_found"`))},
	{"| GET | /v1/public-endpoint | header X-API-Key, no bearer | example of an API-key route |", steps(
		do("key", "GET /v1/public-endpoint", "", 200), do("nobody", "GET /v1/public-endpoint", "", 401), do("admin", "GET /v1/public-endpoint", "", 401))},
	{"| GET | /v1/users/{id} | header Accept-Language | example only |", steps(do("anna", "GET /v1/users/{anna}", "", 200, `"id":"{anna}"`).with("Accept-Language", "fr"))},

	// Profile
	{"Stores a user's profile avatar and profile display preferences.", avatarTypes},
	{"Object with string members `theme`, `date_format`, `currency_display`, `number_format`.", fields("anna", "GET /v1/profile/preferences",
		"theme string", "date_format string", "currency_display string", "number_format string")},
	{"`url` (string), `thumbnail_url` (string).", avatarTypes},
	{"| POST | /v1/profile/avatar | bearer; multipart/form-data with one file member named `file` (image)", func(t *testing.T, b *bank) {
		picture(t, b, "file", encoded(t, "png"), 200)
		picture(t, b, "picture", encoded(t, "png"), 400)
		b.send(t, do("nobody", "POST /v1/profile/avatar", "", 401))
	}},
	{"| GET | /v1/profile/preferences | bearer | 200 profile preferences object |", steps(do("anna", "GET /v1/profile/preferences", "", 200, `"theme"`),
		do("nobody", "GET /v1/profile/preferences", "", 401))},
	{"| avatar file types | jpg, png |", avatarTypes},
	{"| 400 | profile.invalid_file_type | avatar not jpg or png |", avatarTypes},
}

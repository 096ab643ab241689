package demo

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// record is the id of a record that the API returned.
type record struct {
	ID string `json:"id"`
}

// today returns the date that the clock shows.
func (b *builder) today() time.Time { return b.clock.Now().UTC() }

// createCustomers creates the customers of a day: one on every other day, and more later in the year.
func (b *builder) createCustomers(ctx context.Context, day int) error {
	if day == 40 { // the user Nina Keller creates her own record
		return b.createCustomer(ctx, day, identity{language: "de", first: "Nina", last: "Keller", born: "1991-05-14", nationality: "CHE",
			street: "Rosenweg 12", place: place{"8001", "Zürich"}}, b.customer)
	}
	for chance := 28 + day/8; b.random.IntN(100) < chance; chance /= 3 {
		advisor := pick(b, b.staff)
		if b.random.IntN(15) == 0 {
			advisor = b.admin
		}
		if err := b.createCustomer(ctx, day, b.randomIdentity(), advisor); err != nil {
			return err
		}
	}
	return nil
}

// createCustomer creates the customer record of an identity, as a user.
func (b *builder) createCustomer(ctx context.Context, day int, who identity, by *person) error {
	body := object{"first_name": who.first, "last_name": who.last, "email": who.email(len(b.customers)), "date_of_birth": who.born,
		"nationality": who.nationality, "phone": fmt.Sprintf("+4179555%04d", b.random.IntN(10000)),
		"address":  object{"street": who.street, "city": who.place.city, "postal_code": who.place.code, "country": "CH"},
		"metadata": object{"language": who.language, "segment": pick(b, []string{"retail", "private", "young"})}}
	if who.business {
		body["type"] = "business"
		delete(body, "date_of_birth")
		delete(body, "nationality")
	}
	var created record
	if err := b.api.post(ctx, by, "/v1/customers", body, &created); err != nil {
		return err
	}
	b.customers = append(b.customers, customer{id: created.ID, advisor: by, identity: who, day: day})
	return nil
}

// advanceVerifications submits documents and makes decisions for the customers of the days before.
func (b *builder) advanceVerifications(ctx context.Context, day int) error {
	for i := range b.customers {
		c := &b.customers[i]
		if c.advisor == b.customer {
			i = 1 // the verification of Nina Keller succeeds
		}
		var err error
		switch day - c.day {
		case 1:
			if i%9 != 0 { // some never submit documents
				err = b.submitDocuments(ctx, c, i)
			}
		case 3:
			if i%9 != 0 && i%7 != 0 {
				err = b.decide(ctx, c, "in_review", "")
			}
		case 6:
			err = b.concludeReview(ctx, c, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// submitDocuments submits an identity document and, for most customers, a proof of address.
func (b *builder) submitDocuments(ctx context.Context, c *customer, i int) error {
	expiry := b.today().AddDate(1+i%8, i%12, i%28)
	if i%9 == 5 { // has expired today, or expires soon
		expiry = b.today().AddDate(0, 0, days-c.day+10-i%20)
	}
	if !expiry.After(b.today()) {
		expiry = b.today().AddDate(0, 0, 3)
	}
	kinds := []string{"passport", "identity_card"}
	if c.identity.nationality != "CHE" {
		kinds = []string{"passport", "residence_permit"}
	}
	documents := []object{{"type": pick(b, kinds), "number": fmt.Sprintf("X%07d", 1000000+i*7919%8999999),
		"expiry_date": expiry.Format(time.DateOnly), "country": c.identity.nationality}}
	if i%3 != 0 {
		documents = append(documents, object{"type": "proof_of_address", "number": fmt.Sprintf("EW-%05d", i), "country": "CHE",
			"expiry_date": b.today().AddDate(1, 0, 0).Format(time.DateOnly)})
	}
	err := b.api.do(ctx, c.advisor, http.MethodPut, "/v1/customers/"+c.id+"/kyc", object{"documents": documents}, nil)
	if err != nil {
		return err
	}
	return b.evidenceOf(ctx, c, i)
}

// concludeReview decides the verification of a customer.
func (b *builder) concludeReview(ctx context.Context, c *customer, i int) error {
	if i%9 == 0 || i%7 == 0 {
		return nil
	}
	switch i % 11 {
	case 4:
		return b.decide(ctx, c, "rejected", "The documents do not belong to the applicant.")
	case 6:
		return b.decide(ctx, c, "action_required", "The copy of the document cannot be read.")
	case 8:
		return nil // still in review
	}
	if c.identity.business || i%10 == 3 {
		return b.decideTogether(ctx, c)
	}
	return b.decide(ctx, c, "verified", "Documents checked against the original.")
}

// openDecisions is the number of days before today from which on decisions still wait for a second person.
const openDecisions = 90

// decideTogether verifies a customer at the level enhanced: one reviewer proposes it, another one confirms it. The newest decisions still
// wait.
func (b *builder) decideTogether(ctx context.Context, c *customer) error {
	first := b.staff[c.day%len(b.staff)]
	if first == c.advisor {
		first = b.reviewerOf(c)
	}
	body := object{"kyc_status": "verified", "verification_level": "enhanced", "reason": "Source of funds and beneficial owner documented."}
	var proposed struct {
		PendingDecision record `json:"pending_decision"`
	}
	path := "/v1/customers/" + c.id + "/kyc"
	if err := b.api.do(ctx, first, http.MethodPatch, path+"/status", body, &proposed); err != nil || c.day > days-openDecisions {
		return err
	}
	second := b.admin
	for _, advisor := range b.staff {
		if advisor != first {
			second = advisor
		}
	}
	return b.api.do(ctx, second, http.MethodPost, path+"/decisions/"+proposed.PendingDecision.ID+"/confirm", object{}, nil)
}

// reviewerOf returns an advisor who did not create the record of a customer.
func (b *builder) reviewerOf(c *customer) *person {
	if b.staff[0] == c.advisor {
		return b.staff[1]
	}
	return b.staff[0]
}

// decide sets the status of a verification, as an advisor who did not create the record.
func (b *builder) decide(ctx context.Context, c *customer, status, reason string) error {
	body := object{"kyc_status": status, "reason": reason}
	return b.api.do(ctx, b.reviewerOf(c), http.MethodPatch, "/v1/customers/"+c.id+"/kyc/status", body, nil)
}

// region is a part of the country with its common names. Random combinations of them are fictitious.
type region struct {
	language   string
	first      []string
	last       []string
	streets    []string
	places     []place
	businesses []string
}

type place struct{ code, city string }

var regions = []region{
	{
		language: "de",
		first:    []string{"Anna", "Beat", "Claudia", "Daniel", "Elisabeth", "Fritz", "Gisela", "Hans", "Irene", "Jürg", "Katharina", "Lukas", "Monika", "Noah", "Regula", "Stefan", "Ursina", "Vreni", "Walter", "Zoé"},
		last:     []string{"Aebischer", "Bächtold", "Christen", "Diethelm", "Egger", "Flückiger", "Gerber", "Hürlimann", "Imhof", "Jenni", "Küng", "Lüscher", "Moser", "Näf", "Odermatt", "Rüegg", "Schürch", "Tanner", "Wyss", "Zurbriggen"},
		streets:  []string{"Bahnhofstrasse", "Dorfstrasse", "Gartenweg", "Kirchgasse", "Mühlebachstrasse", "Rosenweg", "Seestrasse"},
		places: []place{{"8001", "Zürich"}, {"3011", "Bern"}, {"4051", "Basel"}, {"6003", "Luzern"}, {"9000", "St. Gallen"}, {"7000", "Chur"},
			{"8400", "Winterthur"}, {"5000", "Aarau"}},
		businesses: []string{"Holzbau Bergmatt AG", "Velowerk Limmat GmbH", "Bäckerei Morgenrot AG", "Praxis am Stadtgarten AG"},
	},
	{
		language:   "fr",
		first:      []string{"Amélie", "Bastien", "Camille", "Didier", "Élodie", "François", "Gaëlle", "Hugo", "Isabelle", "Jérôme", "Léa", "Mathieu", "Noémie", "Olivier", "Sylvie", "Thibault", "Valérie", "Yves"},
		last:       []string{"Aubert", "Blanc", "Chevalley", "Délèze", "Emery", "Fournier", "Grandjean", "Jaquet", "Magnin", "Nicolet", "Perret", "Rochat", "Savoy", "Thévoz", "Vuilleumier"},
		streets:    []string{"Rue du Lac", "Avenue de la Gare", "Chemin des Vignes", "Rue Centrale", "Route de Berne"},
		places:     []place{{"1003", "Lausanne"}, {"1204", "Genève"}, {"2000", "Neuchâtel"}, {"1700", "Fribourg"}, {"1950", "Sion"}, {"2502", "Biel/Bienne"}},
		businesses: []string{"Atelier des Cimes Sàrl", "Vignoble du Coteau SA", "Horlogerie Le Balancier SA"},
	},
	{
		language:   "it",
		first:      []string{"Alessia", "Bruno", "Chiara", "Davide", "Elena", "Fabio", "Giorgia", "Ivan", "Laura", "Matteo", "Nadia", "Paolo", "Silvia", "Tiziano"},
		last:       []string{"Ambrosini", "Bianchi", "Cattaneo", "Delcò", "Fontana", "Galli", "Lepori", "Moretti", "Pedrazzini", "Rossetti", "Soldati", "Zanetti"},
		streets:    []string{"Via Nassa", "Via della Posta", "Via Stazione", "Viale Portone", "Via al Lago"},
		places:     []place{{"6900", "Lugano"}, {"6500", "Bellinzona"}, {"6600", "Locarno"}, {"6850", "Mendrisio"}},
		businesses: []string{"Grotto del Sole SA", "Edilizia Tre Valli Sagl"},
	},
	{
		language:   "en",
		first:      []string{"Alice", "Benjamin", "Charlotte", "Duncan", "Emily", "Fiona", "George", "Hannah", "Isaac", "Kate", "Oliver", "Priya", "Rosie", "Samuel"},
		last:       []string{"Ashworth", "Barlow", "Carmichael", "Doyle", "Fairfax", "Hartley", "Kingsley", "Lockwood", "Merriweather", "Okafor", "Pemberton", "Sinclair"},
		streets:    []string{"Bahnhofstrasse", "Rue du Rhône", "Seefeldstrasse", "Gartenstrasse"},
		places:     []place{{"8008", "Zürich"}, {"1206", "Genève"}, {"6300", "Zug"}, {"4052", "Basel"}},
		businesses: []string{"Blue Harbour Consulting Ltd", "Northwind Instruments Ltd"},
	},
}

// identity is a fictitious person or business.
type identity struct {
	language    string
	first, last string
	born        string
	nationality string
	street      string
	place       place
	business    bool
}

// pick returns a random element of a list.
func pick[T any](b *builder, list []T) T { return list[b.random.IntN(len(list))] }

// randomIdentity returns a random identity. Languages are as frequent as in the country.
func (b *builder) randomIdentity() identity {
	r := regions[[]int{0, 0, 0, 0, 0, 1, 1, 1, 2, 3}[b.random.IntN(10)]]
	who := identity{language: r.language, first: pick(b, r.first), last: pick(b, r.last), nationality: "CHE",
		street: fmt.Sprintf("%s %d", pick(b, r.streets), 1+b.random.IntN(80)), place: pick(b, r.places),
		born: time.Date(1938+b.random.IntN(66), time.Month(1+b.random.IntN(12)), 1+b.random.IntN(28), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)}
	if r.language == "en" {
		who.nationality = pick(b, []string{"GBR", "IRL", "USA", "CAN"})
	}
	if b.random.IntN(14) == 0 {
		who.business, who.first, who.last = true, "", pick(b, r.businesses)
	}
	return who
}

// email returns an address in a reserved domain, which receives no mail (RFC 2606).
func (i identity) email(n int) string {
	local := strings.Trim(plain(i.first)+"."+plain(strings.Fields(i.last)[0]), ".")
	return fmt.Sprintf("%s.%d@example.ch", local, n)
}

// plain returns a name in lower case without accents, spaces and punctuation.
func plain(name string) string {
	folded, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), strings.ToLower(name))
	if err != nil {
		return "name"
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, folded)
}

// evidenceOf adds invented pictures to the documents of every third customer.
func (b *builder) evidenceOf(ctx context.Context, c *customer, i int) error {
	if i%3 != 1 {
		return nil
	}
	var kyc struct {
		Documents []struct {
			ID     string `json:"id"`
			Type   string `json:"type"`
			Number string `json:"number"`
		} `json:"documents"`
	}
	if err := b.api.get(ctx, c.advisor, "/v1/customers/"+c.id+"/kyc", &kyc); err != nil {
		return err
	}
	for _, d := range kyc.Documents {
		name, content, err := specimen(d.Type, d.Number, c.identity.first+" "+c.identity.last, i)
		if err != nil {
			return err
		}
		if err := b.api.upload(ctx, c.advisor, "/v1/customers/"+c.id+"/kyc/documents/"+d.ID+"/files", name, content); err != nil {
			return err
		}
	}
	return nil
}

// specimen draws a document: a card with a silhouette as JPEG, or a letter as PDF.
func specimen(kind, number, holder string, i int) (name string, content []byte, err error) {
	if kind == "proof_of_address" {
		return "electricity-bill.pdf", letter(number, holder), nil
	}
	const width, height = 856, 540 // the proportions of a card
	hue := color.RGBA{uint8(90 + i*37%110), uint8(110 + i*53%90), uint8(120 + i*29%100), 255}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{238, 234, 224, 255}), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 0, width, 90), image.NewUniform(hue), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(50, 140, 290, 450), image.NewUniform(color.RGBA{208, 208, 204, 255}), image.Point{}, draw.Src)
	silhouette(img, image.Rect(50, 140, 290, 450), hue)
	write(img, 50, 30, 4, "SPECIMEN", color.White)
	for line, text := range []string{holder, number, "Kontor demo", "not a document"} {
		write(img, 330, 150+70*line, 3, text, color.Black)
	}
	var out bytes.Buffer
	err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 80})
	return kind + "-front.jpg", out.Bytes(), err
}

// silhouette draws a head and shoulders into a frame.
func silhouette(img *image.RGBA, frame image.Rectangle, c color.Color) {
	middle := float64(frame.Min.X+frame.Max.X) / 2
	head, shoulders := float64(frame.Min.Y)+115, float64(frame.Max.Y)
	for y := frame.Min.Y; y < frame.Max.Y; y++ {
		for x := frame.Min.X; x < frame.Max.X; x++ {
			dx := float64(x) - middle
			if math.Hypot(dx, float64(y)-head) < 65 || math.Hypot(dx*0.85, float64(y)-shoulders) < 110 {
				img.Set(x, y, c)
			}
		}
	}
}

// write draws a text with letters of 7 by 13 points, scaled.
func write(img *image.RGBA, x, y, scale int, text string, c color.Color) {
	face := basicfont.Face7x13
	small := image.NewAlpha(image.Rect(0, 0, 7*len(text)+7, 16))
	d := font.Drawer{Dst: small, Src: image.NewUniform(color.Alpha{255}), Face: face, Dot: fixed.P(0, 12)}
	d.DrawString(text)
	for sy := range small.Rect.Dy() {
		for sx := range small.Rect.Dx() {
			if small.AlphaAt(sx, sy).A > 0 {
				at := image.Rect(x+sx*scale, y+sy*scale, x+(sx+1)*scale, y+(sy+1)*scale)
				draw.Draw(img, at, image.NewUniform(c), image.Point{}, draw.Src)
			}
		}
	}
}

// letter returns a PDF with one page.
func letter(number, holder string) []byte {
	plain := func(r rune) rune {
		if r > '~' || r < ' ' || r == '(' || r == ')' || r == '\\' {
			return '?'
		}
		return r
	}
	text := "BT /F1 20 Tf 60 760 Td (Elektrizitaetswerk Musterberg - SPECIMEN) Tj /F1 12 Tf 0 -60 Td (" +
		string(bytes.Map(plain, []byte(holder))) + ") Tj 0 -30 Td (Bill " + number + ") Tj 0 -30 Td (This letter was invented for a demonstration.) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for n, object := range objects {
		offsets[n] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", n+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.Bytes()
}

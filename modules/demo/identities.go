package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

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

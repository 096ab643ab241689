package latin

import "strings"

// cyrillic has what Unidecode's tables read as signs: letters of Turkic and other languages.
var cyrillic = pairs(`ә a ғ g қ k ң n ө o ұ u ү u һ h ҳ h ҷ j ӣ i ӯ u ў u ӝ j ӡ dz ҡ k ҙ z ҫ s ӑ a ӗ e ґ g і i ї i є ie ъ - ь -`)

// The Latin alphabets of Serbian and Macedonian, the Ukrainian Resolution 55, and the Bulgarian Transliteration Act.
var (
	serbian   = pairs(`а a б b в v г g д d ђ dj е e ж z з z и i ј j к k л l љ lj м m н n њ nj о o п p р r с s т t ћ c у u ф f х h ц c ч c џ dz ш s ѓ gj ќ kj ѕ dz`)
	ukrainian = pairs(`а a б b в v г h ґ g д d е e є ye ж zh з z и y і i ї yi й i к k л l м m н n о o п p р r с s т t у u ф f х kh ц ts ч ch ш sh щ shch ь - ю yu я ya ў u ы y э e`)
	bulgarian = pairs(`а a б b в v г g д d е e ж zh з z и i й y к k л l м m н n о o п p р r с s т t у u ф f х h ц ts ч ch ш sh щ sht ъ a ь y ю yu я ya`)

	plainDje = strings.NewReplacer("ђ", "д")
	yo       = strings.NewReplacer("жё", "жо", "чё", "чо", "шё", "шо", "щё", "що", "ё", "йо")
)

// cyrillicReadings reads a word in the languages that have its letters.
func cyrillicReadings(text string) []string {
	text = strings.ToLower(text)
	all := []string{by(text, cyrillic)}
	if strings.Contains(text, "ё") {
		all = append(all, by(strings.ReplaceAll(text, "ё", "е"), cyrillic), by(yo.Replace(text), cyrillic))
	}
	if only(text, serbian) {
		all = append(all, by(text, serbian), by(plainDje.Replace(text), serbian))
	}
	if strings.ContainsAny(text, "гґєїўи") && only(text, ukrainian) {
		all = append(all, by(text, ukrainian))
	}
	if strings.ContainsAny(text, "щъ") && only(text, bulgarian) {
		all = append(all, by(text, bulgarian))
	}
	return all
}

// only reports whether a table has all letters of a text.
func only(text string, table map[rune]string) bool {
	for _, r := range text {
		if _, known := table[r]; !known {
			return false
		}
	}
	return true
}

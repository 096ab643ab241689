package latin

import (
	"slices"
	"strings"
	"unicode"
)

// The consonants of Thai by RTGS, at the beginning and at the end of a syllable, and the vowels.
var (
	thaiInitials = pairs(`ก k ข kh ฃ kh ค kh ฅ kh ฆ kh ง ng จ ch ฉ ch ช ch ซ s ฌ ch ญ y ฎ d ฏ t ฐ th ฑ th ฒ th ณ n ด d ต t ถ th ท th ธ th น n บ b ป p ผ ph ฝ f พ ph ฟ f ภ ph
		ม m ย y ร r ฤ rue ล l ว w ศ s ษ s ส s ห h ฬ l อ - ฮ h ะ a ั a า a ำ am ิ i ี i ึ ue ื ue ุ u ู u เ e แ ae โ o ใ ai ไ ai ็ - ่ - ้ - ๊ - ๋ - ฯ - ๆ -`)
	thaiFinals = with(thaiInitials, `ข k ค k ฆ k จ t ช t ซ t ฎ t ฐ t ฑ t ฒ t ด t ถ t ท t ธ t ศ t ษ t ส t ญ n ร n ล n ฬ n บ p พ p ฟ p ภ p ว o ย i`)
	thaiSh     = with(thaiInitials, `ช sh`) // as in Shinawatra
)

const (
	thaiSilent   = '์' // the letter before it is not spoken
	beforeVowels = "เแโใไ"
)

// thaiReadings reads a word with the sounds that consonants have at the beginning of a syllable, and with the last one as it is spoken.
func thaiReadings(text string) []string {
	letters := []rune(strings.ReplaceAll(text, "\u0e4d\u0e32", "\u0e33")) // as normal form KC takes it apart
	var spoken []rune
	for i := 0; i < len(letters); i++ {
		switch r := letters[i]; {
		case r == thaiSilent:
			for len(spoken) > 0 && !unicode.IsLetter(spoken[len(spoken)-1]) { // a vowel of the silent letter
				spoken = spoken[:len(spoken)-1]
			}
			spoken = spoken[:max(0, len(spoken)-1)]
			if n := len(spoken); n > 0 && letters[i-1] == 'ร' && spoken[n-1] == 'ท' { // "ทร์" is not spoken at all
				spoken = spoken[:n-1]
			}
		case strings.ContainsRune(beforeVowels, r) && i+1 < len(letters): // written before the consonant, spoken after it
			spoken = append(spoken, letters[i+1], r)
			i++
		default:
			spoken = append(spoken, r)
		}
	}
	if len(spoken) == 0 {
		return nil
	}
	last := len(spoken) - 1
	all := []string{by(string(spoken), thaiInitials), by(string(spoken[:last]), thaiInitials) + by(string(spoken[last:]), thaiFinals)}
	if slices.Contains(spoken, 'ช') {
		all = append(all, by(string(spoken), thaiSh))
	}
	return all
}

// ethiopicRows are the consonants of the rows of eight syllables from U+1200 on, and ethiopicOrders the vowels by BGN/PCGN: the sixth order is
// often not spoken.
var (
	ethiopicRows   = strings.Fields("h l h m s r s sh q qw q qw b v t ch h hw n gn - k kw kh khw w - z zh y d d j g gw g t ch p ts ts f p")
	ethiopicOrders = [2][]string{strings.Fields("e u i a e - o wa"), strings.Fields("a u i a e i o wa")}
)

func ethiopicReadings(text string) []string {
	const first, row = 0x1200, 8
	var all []string
	for _, vowels := range ethiopicOrders {
		var b strings.Builder
		for i, r := range []rune(text) {
			n := int(r) - first
			if n < 0 || n/row >= len(ethiopicRows) {
				b.WriteString(decode(string(r)))
				continue
			}
			consonant, vowel := strings.TrimPrefix(ethiopicRows[n/row], "-"), strings.TrimPrefix(vowels[n%row], "-")
			switch {
			case consonant == "" && n%row == 0:
				vowel = "a"
			case consonant == "" && n%row == 5 && i == 0:
				vowel = "i"
			case consonant == "h" && n%row == 0:
				vowel = "a"
			}
			b.WriteString(consonant + vowel)
		}
		all = append(all, b.String())
	}
	return all
}

// Burmese by BGN/PCGN of 1970: consonants, vowels, and the rhymes of a vowel with a final consonant.
var (
	burmeseConsonants = pairs(`က k ခ kh ဂ g ဃ g င ng စ s ဆ s ဇ z ဈ z ဉ ny ည ny ဋ t ဌ ht ဍ d ဎ d ဏ n တ t ထ ht ဒ d ဓ d န n ပ p ဖ ph ဗ b ဘ b မ m ယ y ရ y လ l ဝ w သ th ဿ th ဟ h ဠ l အ -
		ဣ i ဤ i ဥ u ဦ u ဧ e ဩ aw ဪ aw`)
	burmeseVowels = map[string]string{"": "a", "ာ": "a", "ါ": "a", "ိ": "i", "ီ": "i", "ု": "u", "ူ": "u", "ေ": "e", "ဲ": "e", "ော": "aw", "ေါ": "aw", "ို": "o", "ံ": "an", "ုံ": "on", "ိံ": "ein"}
	burmeseRhymes = map[string]string{
		"က": "et", "ောက": "auk", "ေါက": "auk", "ိုက": "aik", "င": "in", "ောင": "aung", "ေါင": "aung", "ိုင": "aing", "စ": "it", "ည": "i", "ဉ": "in", "တ": "at", "ိတ": "eik", "ုတ": "ok",
		"န": "an", "ိန": "ein", "ုန": "on", "ပ": "at", "ိပ": "eik", "ုပ": "ok", "မ": "an", "ိမ": "ein", "ုမ": "on", "ယ": "e", "ော": "aw", "ွ": "u",
	}
	burmeseDigraphs = strings.NewReplacer("khy", "ch", "hy", "sh")
)

const (
	burmeseKill    = '်'
	burmeseStack   = '္'
	burmeseMedials = "ျြွှ"
	burmeseTones   = "့း"
)

// burmeseWords returns the syllables: names are written without spaces.
func burmeseWords(text string) (all []Word) {
	letters := []rune(text)
	for i := 0; i < len(letters); {
		n := burmeseSyllable(letters[i:])
		all = append(all, syllables(wordsOf(string(letters[i:i+n]), burmeseReadings(letters[i:i+n])...))...)
		i += n
	}
	return all
}

// burmeseSyllable returns how many letters the first syllable has: a consonant with its signs, and consonants that end it.
func burmeseSyllable(letters []rune) int {
	n := 1
	for n < len(letters) {
		_, starts := burmeseConsonants[letters[n]]
		next := n + 1
		for next < len(letters) && strings.ContainsRune(burmeseTones, letters[next]) {
			next++
		}
		ends := next < len(letters) && (letters[next] == burmeseKill || letters[next] == burmeseStack)
		switch {
		case starts && !ends:
			return n
		case starts && letters[next] == burmeseStack:
			return next + 1
		case starts:
			n = next
		}
		n++
	}
	return n
}

// burmeseReadings returns the reading of a syllable, and the usual spelling of its rhyme.
func burmeseReadings(letters []rune) []string {
	read := burmeseReading(letters)
	usual := read
	switch {
	case strings.HasSuffix(read, "n") && slices.Contains(letters, '့'): // as in Nyunt and Myint
		usual += "t"
	case strings.HasSuffix(read, "o"):
		usual += "e"
	}
	return []string{read, usual}
}

func burmeseReading(letters []rune) string {
	initial, known := burmeseConsonants[letters[0]]
	if !known {
		return decode(string(letters))
	}
	initial = strings.TrimPrefix(initial, "-")
	breathed := slices.Contains(letters, 'ှ')
	var vowel, final string
	glides := ""
	for _, r := range letters[1:] {
		switch {
		case r == 'ျ' || r == 'ြ':
			glides += "y"
		case r == 'ွ':
			glides += "w"
		case strings.ContainsRune(burmeseMedials+burmeseTones, r), r == burmeseKill, r == burmeseStack:
		case burmeseConsonants[r] != "":
			final = string(r)
		default:
			vowel += string(r)
		}
	}
	if breathed {
		initial = "h" + initial
	}
	rhyme, found := burmeseRhymes[vowel+final]
	switch {
	case final == "":
		rhyme, found = burmeseVowels[vowel]
	case strings.HasSuffix(glides, "w") && vowel == "" && strings.Contains("နမ", final):
		glides, rhyme = strings.TrimSuffix(glides, "w"), "un"
	case strings.HasSuffix(glides, "w") && vowel == "" && strings.Contains("တပ", final):
		glides, rhyme = strings.TrimSuffix(glides, "w"), "ut"
	}
	if !found && rhyme == "" {
		rhyme = decode(vowel + final)
	}
	return burmeseDigraphs.Replace(initial+glides) + rhyme
}

package latin

import (
	"strings"
	"unicode/utf8"
)

// The readings of the parts of a Hangul syllable, in the order of Unicode: the Revised Romanization, and McCune–Reischauer without marks.
var (
	initialsRR = strings.Fields("g kk n d tt r m b pp s ss - j jj ch k t p h")
	vowelsRR   = strings.Fields("a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i")
	// usualVowels are those of many people's own spelling, such as Jung-hee.
	usualVowels = strings.Fields("a ae ya yae u e yu ye o wa wae oe yo u wo we wi yu u ee i")
	finalsRR    = strings.Fields("- k k ks n nj nh t l lk lm lp ls lt lp lh m p ps t t ng t t k t p t")
	initialsMR  = strings.Fields("k kk n t tt r m p pp s ss - ch tch ch k t p h")
	vowelsMR    = strings.Fields("a ae ya yae o e yo ye o wa wae oe yo u wo we wi yu u ui i")
)

// familyNames are the family names of one syllable, each with its usual spellings that no standard has.
var familyNames = readings(`김 gim 이 lee/ri/rhee 박 park 최 choi 정 chung/jung 강 gang 조 cho/jo 윤 yoon 장 jang 임 lim/rim 한 - 오 oh 서 suh 신 shin 권 kwon 황 -
	안 ahn 송 - 류 yu/ryu 유 yoo/ryu 전 chun/jun 홍 - 고 ko 문 moon 양 ryang 손 sohn 배 bae 백 paek/baik 허 hur/huh 남 - 심 shim 노 roh/ro 하 - 곽 kwak 성 sung 차 -
	주 joo 우 woo 구 koo 민 - 나 ra 진 - 지 - 엄 um 채 - 원 won 천 chun 방 - 공 kong 현 hyun 함 - 변 byun 염 yum 여 ryo 추 choo 도 - 소 - 석 suk 선 sun 설 sul 마 - 길 kil
	연 yun 위 wi 표 pyo 명 myung 기 ki 반 - 왕 wang 금 kum 옥 - 육 yook 인 - 맹 - 제 - 모 - 탁 - 국 kook 어 - 은 - 편 - 용 yong 리 lee/ri/rhee 림 lim/im 로 roh/noh 라 na 려 yeo`)

// longFamilyNames are the family names of two syllables.
var longFamilyNames = strings.Fields("남궁 황보 제갈 사공 선우 독고 서문 동방")

func readings(text string) map[string][]string {
	all := map[string][]string{}
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i += 2 {
		all[fields[i]] = strings.Split(strings.TrimPrefix(fields[i+1], "-"), "/")
	}
	return all
}

// hangulWords returns the family name of a word of two to four syllables, and each further syllable as a word.
func hangulWords(text string) (all []Word) {
	family, given := hangulNames(text)
	if family != "" {
		all = syllables(wordsOf(family, append(hangulReadings(family), familyNames[family]...)...))
	} else if names, known := familyNames[text]; known {
		return syllables(wordsOf(text, append(hangulReadings(text), names...)...))
	} else {
		given = text
	}
	for _, r := range given {
		all = append(all, syllables(wordsOf(string(r), hangulReadings(string(r))...))...)
	}
	return all
}

// hangulReadings returns the readings in the same order for all syllables.
func hangulReadings(text string) []string {
	return []string{romanized(text, initialsRR, vowelsRR), romanized(text, initialsMR, vowelsMR), romanized(text, initialsRR, vowelsMR),
		romanized(text, initialsRR, usualVowels), romanized(text, initialsMR, usualVowels)}
}

func syllables(words []Word) []Word {
	for i := range words {
		words[i].Syllable = true
	}
	return words
}

func hangulNames(text string) (family, given string) {
	n := utf8.RuneCountInString(text)
	for _, long := range longFamilyNames {
		if given, has := strings.CutPrefix(text, long); has && n > 2 && n < 6 {
			return long, given
		}
	}
	_, size := utf8.DecodeRuneInString(text)
	if _, known := familyNames[text[:size]]; known && n > 2 && n < 5 {
		return text[:size], text[size:]
	}
	return "", ""
}

// romanized reads the syllables by tables of their parts.
func romanized(text string, initials, vowels []string) string {
	const first, finals, vowelCount = 0xAC00, 28, 21
	var b strings.Builder
	for _, r := range text {
		n := int(r) - first
		if n < 0 || n >= len(initials)*vowelCount*finals {
			b.WriteString(decode(string(r)))
			continue
		}
		initial, vowel := initials[n/(vowelCount*finals)], vowels[n/finals%vowelCount]
		if initial == "-" && vowel == "ee" {
			vowel = "eui"
		}
		for _, part := range []string{initial, vowel, finalsRR[n%finals]} {
			b.WriteString(strings.TrimPrefix(part, "-"))
		}
	}
	return b.String()
}

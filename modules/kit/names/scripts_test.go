package names_test

import (
	"testing"

	"kontor/modules/kit/names"
)

// same are names in two scripts or spellings, by what they stand for. Both kinds of search find them.
var same = map[string][][2]string{
	"Serbian and Macedonian": {{"Милош Обрадовић", "Miloš Obradović"}, {"Ђорђе Ђорђевић", "Djordje Djordjevic"}, {"Ђорђе Ђорђевић", "Đorđe Đorđević"},
		{"Đorđe Đorđević", "Djordje Djordjevic"}, {"Жељко Примерац", "Zeljko Primerac"}, {"Ќире Џамбазов", "Kire Dzambazov"}},
	"Ukrainian": {{"Гончаренко Володимир", "Volodymyr Honcharenko"}, {"Євген Їжак", "Yevhen Yizhak"}, {"Сергій Гриценко", "Serhii Hrytsenko"}},
	"Bulgarian": {{"Костадин Първанов", "Kostadin Parvanov"}},
	"Russian ё": {{"Семён Фёдоров", "Semen Fedorov"}, {"Семён Фёдоров", "Semyon Fyodorov"}, {"Фёдоров Пётр", "Федоров Петр"}, {"Хрущёв Никита", "Nikita Khrushchov"}},
	"Greek":     {{"Νίκος Βασιλείου", "Nikos Vassiliou"}, {"Γιώργος Μπάμπης", "Giorgos Babis"}},
	"Persian": {{"محمود احمدی\u200cنژاد", "Mahmoud Ahmadinejad"}, {"قاسم سلیمی", "Ghasem Salimi"}, {"رضا ذوالفقاری", "Reza Zolfaghari"},
		{"احمدی نژاد محمود", "Mahmoud Ahmadinejad"}},
	"Arabic particles": {{"عبدالعزيز الفوزان", "Abd al-Aziz al-Fawzan"}, {"عبدالعزيز الفوزان", "Abdulaziz Alfawzan"}, {"Abdelaziz Alfawzan", "Abd al-Aziz al-Fawzan"},
		{"بشار الأسد", "Bashar Assad"}, {"Abdurrahman Yusuf", "Abd al-Rahman Yusuf"}, {"Nureddin Halabi", "Nur al-Din al-Halabi"}, {"Bashar Alassad", "Bashar al Asad"}},
	"Korean": {{"김민수", "Min-su Kim"}, {"박정희", "Park Chung-hee"}, {"이명박", "Lee Myung-bak"}, {"김정은", "Kim Jong Un"}, {"최룡해", "Choe Ryong Hae"}, {"리설주", "Ri Sol Ju"},
		{"문재인", "Jae-in Moon"}, {"정의선", "Chung Eui-sun"}, {"남궁민수", "Namgung Minsu"}},
	"Thai":    {{"ทักษิณ ชินวัตร", "Thaksin Shinawatra"}, {"สมชาย วงศ์สวัสดิ์", "Somchai Wongsawat"}, {"ประยุทธ์ จันทร์โอชา", "Prayut Chan-o-cha"}, {"เสรี ตัวอย่าง", "Seri Tuayang"}},
	"Amharic": {{"አብይ አህመድ", "Abiy Ahmed"}, {"ተድሮስ አድሃኖም", "Tedros Adhanom"}, {"መለስ ዜናዊ", "Meles Zenawi"}, {"ኃይለማርያም ደሳለኝ", "Hailemariam Desalegn"}},
	"Burmese": {{"မင်းအောင်လှိုင်", "Min Aung Hlaing"}, {"အောင်ဆန်းစုကြည်", "Aung San Suu Kyi"}, {"သိန်းစိန်", "Thein Sein"}, {"ခင်ညွန့်", "Khin Nyunt"}, {"စိုးဝင်း", "Soe Win"}},
	"Chinese": {{"李明", "Ming Li"}, {"王小明", "Wang Xiaoming"}, {"小明 王", "Wang Xiaoming"}, {"欧阳修", "Ouyang Xiu"}},
	"kanji":   {{"加藤健一", "加藤 健一"}, {"髙橋さくら", "髙橋さくら"}},
	"Latin":   {{"Müller Jürg", "Mueller Juerg"}, {"Søren Åberg", "Soeren Aaberg"}},
	"short forms": {{"Ron Muster", "Ronald Muster"}, {"Beppe Esempio", "Giuseppe Esempio"}, {"Ueli Muster", "Ulrich Muster"}, {"J.-B. Muster", "Jean-Baptiste Muster"},
		{"J.\u2011B. Muster", "Jean Baptiste Muster"}, {"JB Muster", "Jean-Baptiste Muster"}},
	"one name": {{"FNU Suharto", "Suharto"}, {"Suharto LNU", "FNU Suharto"}, {"- Suharto", "Suharto"}, {"Suharto (no last name)", "SUHARTO"}},
	"letters that look alike": {{"ЅМІТН ЈОНN", "John Smith"}, {"Vіktоr Веispielow", "Viktor Beispielow"}, {"Ceргeй Лaвpoв", "Sergey Lavrov"}, {"ꓦꓲꓗꓔꓳꓣ Muster", "Viktor Muster"},
		{"Ѕсорах Осо", "Scopax Oco"}},
	"letters apart": {{"J O H N  S M I T H", "John Smith"}, {"S M I T H J O H N", "John Smith"}, {"J-o-h-n S.m.i.t.h", "John Smith"}, {"Jo hn Sm ith", "John Smith"}, {"S A M I R M U S T E R", "Samir Muster"}},
	"separators": {{"Beispielow/Viktor", "Viktor Beispielow"}, {"Viktor; Beispielow", "Viktor Beispielow"}, {"Viktor alias Beispielow", "Viktor Beispielow"},
		{"Viktor Beispielow/", "Viktor Beispielow"}, {"Viktor Beispielow;", "Viktor Beispielow"}, {"Li alias Na", "Li Na"}, {"Viktor a.k.a. Nobody aka Beispielow", "Viktor Beispielow"}},
	"padding": {{"Viktor Aa Bb Cc Dd Ee Ff Gg Hh Ii Jj Kk Ll Mm Nn Oo Pp Qq Beispielow", "Viktor Beispielow"}},
}

func TestCompare_Scripts(t *testing.T) {
	for of, all := range same {
		for _, one := range all {
			if score, evidence := names.CompareTexts(one[0], one[1], names.Person, nil); score < names.DefaultThreshold {
				t.Errorf("%s: %q and %q score %v: %v", of, one[0], one[1], score, evidence)
			}
			for _, listed := range []string{one[1], one[0]} {
				b := names.NewBuilder()
				b.Add(0, "Somebody Else", names.Person)
				b.Add(1, listed, names.Person)
				x := b.Build()
				for _, kind := range []names.Kind{names.Person, names.Unknown} {
					if found := x.Search(one[0], kind, names.DefaultThreshold, nil); len(found) != 1 || found[0].Entry != 1 {
						t.Errorf("%s: a search for %q finds %+v, want %q", of, one[0], found, listed)
					}
				}
			}
		}
	}
}

// Names of other people score below the threshold, also where one reading of a script would be alike.
func TestCompare_OtherPeople(t *testing.T) {
	for _, one := range [][2]string{
		{"加藤健一", "Jin Teng"}, {"加藤", "Jia Teng"}, {"高橋健一", "Gao Qiao"}, {"佐藤 健", "Zuo Teng Jian"}, {"김영일", "Kim Yong Chol"}, {"미영 강", "Kang Ryong"}, {"은서 최", "Cho Il U"},
		{"이재형", "이재명"}, {"محمد حمیدی", "Mohammad Ahmadi"}, {"ماهان هنری", "Han Yu-ro"}, {"晨 张", "Chang Myong-chin"}, {"Иван Петров", "Anna Muster"},
		{"Li Na", "Lu Na"}, {"B. Muster", "Anna Muster"},
	} {
		for _, order := range [][2]string{one, {one[1], one[0]}} {
			if score, evidence := names.CompareTexts(order[0], order[1], names.Person, nil); score >= names.DefaultThreshold {
				t.Errorf("%q and %q score %v: %v", order[0], order[1], score, evidence)
			}
		}
	}
}

func TestCompare_Organisations(t *testing.T) {
	for _, c := range []struct {
		query, entry string
		matches      bool
	}{
		{"Wzor Sp.z.o.o", "Wzor sp. z o.o.", true},
		{"Wzor Sp.z.o.o.", "Wzor Ltd", true},
		{"Muster G m b H", "Muster GmbH", true},
		{"van der bilt corp", "vanderbilt corp", true},
		{"LXC Aviation", "L.X.C Aviation", true},
		{"BWI Aviation", "BAE Aviation", false},
		{"LXC Aviation", "LAU Aviation", false},
		{"BWI", "BAE", false},
	} {
		for _, order := range [][2]string{{c.query, c.entry}, {c.entry, c.query}} {
			if score, evidence := names.CompareTexts(order[0], order[1], names.Organisation, nil); score >= names.DefaultThreshold != c.matches {
				t.Errorf("%q and %q score %v: %v", order[0], order[1], score, evidence)
			}
		}
	}
}

func TestDoubtOf(t *testing.T) {
	for text, want := range map[string]names.Doubt{
		"Anna Muster": "", "J. R. R. Tolkien": "", "李 明": "", "김 민 수": "", "東京タワー太郎": "", "Müller-Иванов": "", "Jean-Luc d'Arc": "", "M. Łukasz": "", "Sukarno": "", "- Sukarno": "",
		"Viktor Бейспилов": "", "Zoë Ångström": "", "محمود احمدی\u200cنژاد": "", "": "", "…": "", "S.A.R.L. Muster 24": "", "S. A. R. L. Muster": "", "Wzor sp. z o. o.": "", "Μαρία": "", "한漢": "",
		"Ivаn": names.MixedScripts, "ΙvanMuster": names.MixedScripts, "Viktor Веispielow": names.MixedScripts, "Ꭺnna": names.MixedScripts, "Anna王": names.MixedScripts,
		"V B": names.SingleLetters, "V. B.": names.SingleLetters, "J O H N": names.SingleLetters, "S A M I R": names.SingleLetters, "Anna A B C D": names.SingleLetters,
		"a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a": names.ManyParts,
	} {
		if got := names.DoubtOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

package latin

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// chineseFamilyNames are the family names of one character of nearly all Chinese people, in both ways to write.
const chineseFamilyNames = "王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何林高罗羅郑鄭梁谢謝宋唐许許韩韓邓鄧冯馮曹彭曾肖萧蕭田董潘袁蔡蒋蔣余于杜叶葉程魏苏蘇吕呂丁任卢盧姚沈钟鍾姜崔谭譚陆陸范汪廖石金韦韋贾賈夏付傅方邹鄒熊白孟秦邱侯江尹薛闫阎閻段雷龙龍黎史陶贺賀毛郝顾顧龚龔邵万萬覃武钱錢戴严嚴莫孔向常汤湯康易乔喬赖賴文施洪辛柯颜顏倪牛温溫芦季俞章葛柴翁齐齊焦庄莊梅欧歐殷涂植游詹申伍尤毕畢耿聂聶关關兰蘭鲁魯宁寧左岳成柳安纪紀裴项項祝霍阮包童骆駱甘单單路饶饒曲包代卜简簡鲍鮑车車古凌盛翟房蓝藍邢娄婁沙穆池宫宮苗屈冉符初谷辜鞠司米明麦麥佟舒巩冷时時滕晏樊桂官连連卓蒙丛岑巫车艾蒲喻桑娄荣榮牟闵閔郎华華应應钮景党乐樂费費廉奚柏水窦竇云雲井解宗全班仇甄曲封储靳松富巴牧隗山弓谷於惠於仰仲伊宫於"

// longFamilyNames of Chinese people, of two characters.
var longChineseNames = strings.Fields("欧阳 歐陽 司马 司馬 诸葛 諸葛 上官 司徒 夏侯 皇甫 尉迟 尉遲 公孙 公孫 慕容 令狐 宇文 长孙 長孫 东方 東方 独孤 獨孤 南宫 南宮 端木 轩辕 軒轅 申屠 呼延 百里 拓跋 张简 張簡")

// japaneseNames are frequent Japanese family names that begin with a Chinese one.
var japaneseNames = strings.Fields(`高橋 高木 高田 高野 高山 高井 高島 高松 高瀬 高桑 石川 石井 石田 石原 石橋 石黒 石塚 石渡 石山 金子 金田 金井 金城 安藤 安田 安部 安達 安倍
	江口 江川 池田 池上 池谷 田中 田村 田辺 田口 田島 田代 田畑 田原 田上 丁野 松本 松田 松尾 松下 松井 松岡 松永 松浦 松村 松島 松原 秦野 古川 古田 古賀 宮崎 宮本 宮田 宮川 宮下 宮沢 宮内
	白井 白石 白川 谷口 谷川 谷本 柴田 柳沢 柳田 梅田 梅原 桑原 桑田 岡田 武田 武藤 水野 水谷 水口 水上 山本 山田 山口 山崎 山下 山中 山内 山根 山岸 井上 井出 井口 富田 富永 富山 富樫
	杉山 熊谷 成田 林田 沢田 関口 関根 今井 今村 菊池 藤井 藤田 藤原 藤本 和田 西村 福田 馬場 河野 万田 本田 毛利 向井 荒井 明石 時田 荻野 星野 黒田 滝沢 桂木 連城 初芝 車谷 米田 米山 時任`)

// Chinese reports whether the Han words of a name can be that of a Chinese person: one has a Chinese family name, and the others one or two
// characters. Names of other people in Han characters sound different than they would in Mandarin.
func Chinese(words []string) bool {
	var han []string
	for _, w := range words {
		switch scripts := scriptsOf(w); {
		case len(scripts) == 1 && scripts[0] == unicode.Han:
			han = append(han, w)
		case slices.Contains(scripts, unicode.Hiragana):
			return false
		}
	}
	switch len(han) {
	case 0:
		return false
	case 1:
		family, given := chineseNames(han[0])
		return family != "" && utf8.RuneCountInString(given) <= 2
	}
	found := false
	for i, w := range han {
		n := utf8.RuneCountInString(w)
		switch {
		case (i == 0 || i == len(han)-1) && isChineseFamily(w):
			found = true
		case n > 2:
			family, _ := chineseNames(w)
			found = found || family != ""
		}
	}
	return found
}

func isChineseFamily(word string) bool {
	return utf8.RuneCountInString(word) == 1 && strings.Contains(chineseFamilyNames, word) || slices.Contains(longChineseNames, word)
}

// chineseNames returns the family name and the given name in a word of two to four characters.
func chineseNames(word string) (family, given string) {
	n := utf8.RuneCountInString(word)
	for _, long := range longChineseNames {
		if given, has := strings.CutPrefix(word, long); has && n > 2 && n < 5 {
			return long, given
		}
	}
	first, size := utf8.DecodeRuneInString(word)
	if n < 2 || n > 3 || !strings.ContainsRune(chineseFamilyNames, first) ||
		slices.ContainsFunc(japaneseNames, func(name string) bool { return strings.HasPrefix(word, name) }) {
		return "", ""
	}
	return word[:size], word[size:]
}

// hanWords reads a Chinese name in Mandarin, the family name and the given name as a word each. Others have no reading.
func hanWords(text string, chinese bool) []Word {
	if !chinese {
		return exact(text)
	}
	if family, given := chineseNames(text); family != "" {
		return syllables(append(wordsOf(family, decode(family)), wordsOf(given, decode(given))...))
	}
	return syllables(wordsOf(text, decode(text)))
}

// exact returns a word with a code for its characters. Digits would be read as numbers.
func exact(text string) []Word {
	var code strings.Builder
	for _, r := range text {
		for ; r > 0; r >>= 4 {
			code.WriteByte(byte('a' + r&15))
		}
	}
	return []Word{{Written: text, Readings: []string{code.String()}, Exact: true}}
}

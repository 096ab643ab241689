import { language, t } from './i18n.js';

// ISO 3166-1 and Kosovo: each alpha-3 code followed by its alpha-2 code.
const ALPHA3 = `
ABWAW AFGAF AGOAO AIAAI ALAAX ALBAL ANDAD AREAE ARGAR ARMAM ASMAS ATAAQ ATFTF ATGAG AUSAU AUTAT AZEAZ BDIBI BELBE BENBJ
BESBQ BFABF BGDBD BGRBG BHRBH BHSBS BIHBA BLMBL BLRBY BLZBZ BMUBM BOLBO BRABR BRBBB BRNBN BTNBT BVTBV BWABW CAFCF CANCA
CCKCC CHECH CHLCL CHNCN CIVCI CMRCM CODCD COGCG COKCK COLCO COMKM CPVCV CRICR CUBCU CUWCW CXRCX CYMKY CYPCY CZECZ DEUDE
DJIDJ DMADM DNKDK DOMDO DZADZ ECUEC EGYEG ERIER ESHEH ESPES ESTEE ETHET FINFI FJIFJ FLKFK FRAFR FROFO FSMFM GABGA GBRGB
GEOGE GGYGG GHAGH GIBGI GINGN GLPGP GMBGM GNBGW GNQGQ GRCGR GRDGD GRLGL GTMGT GUFGF GUMGU GUYGY HKGHK HMDHM HNDHN HRVHR
HTIHT HUNHU IDNID IMNIM INDIN IOTIO IRLIE IRNIR IRQIQ ISLIS ISRIL ITAIT JAMJM JEYJE JORJO JPNJP KAZKZ KENKE KGZKG KHMKH
KIRKI KNAKN KORKR KWTKW LAOLA LBNLB LBRLR LBYLY LCALC LIELI LKALK LSOLS LTULT LUXLU LVALV MACMO MAFMF MARMA MCOMC MDAMD
MDGMG MDVMV MEXMX MHLMH MKDMK MLIML MLTMT MMRMM MNEME MNGMN MNPMP MOZMZ MRTMR MSRMS MTQMQ MUSMU MWIMW MYSMY MYTYT NAMNA
NCLNC NERNE NFKNF NGANG NICNI NIUNU NLDNL NORNO NPLNP NRUNR NZLNZ OMNOM PAKPK PANPA PCNPN PERPE PHLPH PLWPW PNGPG POLPL
PRIPR PRKKP PRTPT PRYPY PSEPS PYFPF QATQA REURE ROURO RUSRU RWARW SAUSA SDNSD SENSN SGPSG SGSGS SHNSH SJMSJ SLBSB SLESL
SLVSV SMRSM SOMSO SPMPM SRBRS SSDSS STPST SURSR SVKSK SVNSI SWESE SWZSZ SXMSX SYCSC SYRSY TCATC TCDTD TGOTG THATH TJKTJ
TKLTK TKMTM TLSTL TONTO TTOTT TUNTN TURTR TUVTV TWNTW TZATZ UGAUG UKRUA UMIUM URYUY USAUS UZBUZ VATVA VCTVC VENVE VGBVG
VIRVI VNMVN VUTVU WLFWF WSMWS XKXXK YEMYE ZAFZA ZMBZM ZWEZW
`;

const PAIRS = ALPHA3.trim().split(/\s+/).map((pair) => [pair.slice(0, 3), pair.slice(3)]);
const FIRST = ['CH', 'LI', 'DE', 'FR', 'IT', 'AT']; // Swiss banks meet these most often
const PEOPLE = ['XXA', 'XXB', 'XXC', 'XXX']; // ICAO 9303-3: of people without the nationality of a state

/**
 * All countries by name in the user's language: [code, name], Switzerland and the countries around it first.
 * @param {2|3} [letters] of the codes
 * @param {boolean} [people] with the codes of stateless people and refugees, at the end
 */
export function countries(letters = 3, people = false) {
  const names = new Intl.DisplayNames(language.get(), { type: 'region' });
  const rank = (short) => (FIRST.includes(short) ? FIRST.indexOf(short) : FIRST.length);
  const all = PAIRS
    .map(([long, short]) => ({ short, code: letters === 3 ? long : short, name: names.of(short) }))
    .sort((a, b) => rank(a.short) - rank(b.short) || a.name.localeCompare(b.name, language.get()))
    .map(({ code, name }) => [code, name]);
  return people ? [...all, ...PEOPLE.map((code) => [code, t(`country.${code}`)])] : all;
}

/** Returns the name for an alpha-2 or alpha-3 code; undefined for a code that the console does not offer. */
export function countryName(code) {
  if (PEOPLE.includes(code)) return t(`country.${code}`);
  const pair = PAIRS.find((both) => both.includes(code));
  return pair && new Intl.DisplayNames(language.get(), { type: 'region' }).of(pair[1]);
}

/** Returns what to show for a code: the name, or the code with a mark if the console does not offer it. */
export function country(code) {
  return code ? countryName(code) ?? t('country.unlisted', { code }) : '';
}

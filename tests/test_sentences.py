"""Sentences of hard cases, by hand in many languages; `|` stands where a sentence ends. What is divided loses nothing."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transformer.sentences import divided, sentences

CASES = """
en She has been a pilot.| He reads.| The customer read a report.| Daniel was 78 years old.
en Dr. Brown met Mr. and Mrs. Hill at St. Mary's.| They left at 5 p.m. with Prof. Li.
en Use a verb, e.g. Go, i.e. a short one.| See Fig. 3 and No. 5.| No.| He said no.| Then he left.
en J. R. R. Tolkien and C. S. Lewis wrote.| George W. Bush read.| So did I.| He left the U.S. in May.
en He lives in the U.S.| She works for Acme Inc.| They sell pens, ink, etc.| We buy them on Main St.| It is cheap.
en "Come!" he said.| "Stay!"| She left.| (It rained.)| "Why?" asked Tom.| He wrote: “Go.”| Then he went.
en Wait...| What was it?| Well... it was nothing… or was it?!| Yes!!| Oh.
en It costs 3.14 or 1,000.50 dollars.| Visit www.example.org/a.b?c=d.| Write to a.b@example.org.| Version 2.0 is out.
en 1. Open the door.| 2. Close it.| (a) That is all.| He was 78.| 3 men came.
en all is lower case here.| nobody types capitals.| why not?| ok!| see mr. hill
en The work of art.| Tom saw it in Jan. 2020 (see vol. 2).| iPhones are new.| In 1999.| Then (?) it ended.
en He came.[3]| She left.[12][13]| “Why?”¹| Nobody knew.²| The list x[3] has it.
en *He left.*| _She_ stayed._| The poet A. A. Milne and B. I. Brown wrote.| A man came.
en no mark at all
de Dr. Meyer kam am 3. Oktober, z. B. mit dem Zug.| Dann ging er.
de „Komm!“| Dann kam sie.| »Geh!«| Er ging.| „Wann?“, fragte sie.| Er sagte: „Nie.“| Sie schwieg.
de Am 24. Dezember 1999 kam Ludwig XIV. König war er, d. h. Herrscher.| Er starb 1999.| Seine Frau lebt.
de Die Firma Meyer & Co. KG (vgl. Abs. 3, S. 5) verkauft Äpfel, Birnen usw. z.B. in Köln.| Hauptstr. 5 ist ihr Sitz.
de Er wurde 3.| Dann ging er.| Im 2. Weltkrieg war u. a. Prof. Dr. Kurt W. Schmidt dort.| 5 Kinder kamen.
de Dr. med. Huber und Dr. rer. nat. Eva Maier kamen mit Dipl.-Ing. Lang.| Siehe Kap. IV.| Ja.
de 1. Der Mann liest.| 2. Die Frau schläft.| Auf diese Art.| Tom lacht ...| Und jetzt?
fr « Viens ! »| Puis elle partit.| « Où ? », dit M. Dupont.| Il a ri… et Mme Roy aussi.
fr Il aime les fruits, p. ex. les pommes, etc.| Elle est née en 50 av. J.-C. à Rome.| J.-P. Sartre écrit.| Quoi ?!| Rien.
fr Selon l'art. 5 et l’art. 7 de la loi, M. Dupont paie.| L'hiver vient.
es ¿Qué hora es?| ¡No sé!| El Sr. Gómez y la Dra. Ruiz viven en EE. UU. desde 1990.| «¡Ven!»| Luego se fue.
it Il sig. Rossi e la dott.ssa Bianchi comprano mele, pere, ecc.| Poi vanno via.| «Dove?»| Non lo so.
it Ai sensi dell'art. 5 e dell’Art. 7 della legge vale.| L'uomo legge.
pt O Sr. Silva e a Dra. Lima, p. ex., leram o art. 5.| Depois saíram.| “Onde?”| Ela riu.
nl Dhr. De Vries kocht bijv. Appels, d.w.z. fruit.| Hij ging weg.| 's Avonds las hij.| ’t Is koud.| Mevr. Smit bleef.
sv Han köpte bl.a. Äpplen, t.ex. Gravenstein, den 3. maj.| Hon gick.| S:t Erik var kung.
da Han kom d. 3. maj, f.eks. Med toget.| Hun gik.| Kl. 10.30 kom dr. Hansen.
fi Hän tuli 3. lokakuuta, esim. Turkuun.| Sitten hän lähti klo 10.| Hän on 78.
pl Prof. Nowak i dr Kowalski czytali, np. Lema, tj. książki.| Potem wyszli.| To był 3. maja.
cs Pan prof. Novák přišel 3. října, např. Vlakem, tzn. pozdě.| Pak odešel.| Krk.| Nos.
sk Napr. Bratislava, resp. Košice a sv. Martin, str. 5 atlasu.| Bol 5. máj.| Dr. Nagy prišiel.
sl Npr. Ljubljana, tj. Mesto, in sv. Marko, str. 5 v atlasu.| Videl ga.| Šel je.
hr Npr. Zagreb, tj. Grad, i sv. Marko s ul. Radić.| Bio je 5. svibnja.| Otišao je.
sr_Latn Npr. Beograd i prof. Petrović.| Otišao je.
scc Нпр. Београд, тј. Град, и проф. Петровић са ул. Цара.| Отишао је.
bg Г-н Иванов и проф. Петров живеят на ул. Раковски в гр. София и др.| После излязоха.
mk Тој живее на ул. Македонија со д-р Петров.| Отиде.
lv Piem. Rīga un prof. Bērziņš.| Viņš aizgāja.
lt Pvz. Vilnius ir prof. Petraitis.| Jis išėjo.
et Näit. Tallinn ja prof. Tamm.| Ta läks.
is T.d. Reykjavík og sr. Jón.| Hann fór.
ca El Sr. Puig i la Dra. Vila viuen a l'av. Diagonal.| Han vingut.
vi Ông ở TP. Hồ Chí Minh với ThS. Nguyễn và TS. Trần.| Bà đi.
id Ir. Budi dan Dra. Sari datang.| Mereka pergi.
swh Bw. Juma na Bi. Asha walikuja.| Waliondoka.
ru Поэт А. С. Пушкин и В. И. Даль писали.| И он писал.
it Nel sec. XIX nacque.| Morì nel sec. XX.
ru А. С. Пушкин жил на ул. Пушкина, т. е. в г. Москве.| Потом он уехал в 1999 г. из города.| «Где?»| Он ушёл.
uk Він жив на вул. Франка, т. зв. Домі.| Потім він пішов.| «Де?»| Там.
tr Dr. Yılmaz 3. katta oturuyor, örn. Ankara'da.| Sonra gitti.| Nerede?| Evde.
el Τι κάνεις;| Καλά.| Ο κ. Παππάς, π.χ. Ο Νίκος, ήρθε.| «Πού;»| Εκεί· ναι.
hi वह आया।| फिर वह गया।| डॉ. शर्मा कहाँ हैं?| “यहाँ!”| अच्छा।|वह हँसा।
mr डॉ. जोशी आले.| ते गेले.
ta திரு. ராமன் வந்தார்.| அவர் போனார்.
bn ডা. রহমান ও সে এল।| তারপর সে গেল।| কেন?
ur وہ آیا۔| پھر گیا۔| کیوں؟| ہاں!
ar ذهب د. أحمد إلى البيت.| ثم عاد.| لماذا؟| نعم!
he הוא בא.| היא הלכה.| למה?| ככה!
zh 他说：“你好！”|他走了。|真的？|是的……很好。|“好。”|价格是3.14元。
zh 今天是2020年。|2021年快到了！|（他走了。）|(她来了。)|3月。|￥5太贵。
ja 漢字を読む。|「本当？」と言う。|なに？！|はい。| 『はい。』|次の文（例）。|終わり
ja 2020年です。|2021年です。|実験した．|結果は３．１４で，Ａ．Ｂ．Ｃ社とA．B氏のもの．|「次．」と言う．
ko 오늘은 2020. 5. 3. 일요일이다.| 그는 1990. 3. 1. 태어났다.
hu A mérkőzés 2020. 05. 03. napján volt.| 1990-ben született.
es El Excmo. Sr. Alcalde llegó.| Habló.
hr Prof. dr. sc. Ivan Horvat je došao.| Otišao je.
hi डॉ. ए. पी. जे. कलाम आए।| वे गए।
ko 그는 왔다.| 그녀는 갔다.| 왜?| 3.5초 걸렸다.
hy Նա եկավ։| Հետո գնաց։
am እሱ መጣ።| ከዚያ ሄደ።| ለምን?
th เขามา แล้วเธอก็ไป
my သူလာတယ်။| သူမသွားတယ်။
km គាត់មក។| នាងទៅ។
en The paper (Smith et al., 2019) has it.| See Sect. 4.2 and Arts. 5 and 6.| Wait‽| Go.| Ver. 2 is out.| Reg. No. 5.
de Vgl. Meyer et al. (2019), Hausnr. 5, Tab. 4 und Pos. 6.| Nimm Nr. 7.| Danke.| Am 7. Dezember.
fr Voir coll. 3, tab. 4, tél. 5 et réf. 6 (al. 7).| Merci.
es Ver fig. 3, apdo. 4, párr. 5 y sec. 6.| Los JJ. OO. de 1992.| Bien.
it Vedi tab. 3, co. 4, lett. a), all. 5 e artt. 6 e 7.| Bene.
pt Ver fig. 3, inc. 4, eq. 5 e ref. 6.| Bem.
nl Zie fig. 3, tab. 4, afb. 5 en tel. 6.| Goed.
sv Se fig. 3, tab. 4, bil. 5, art. 6 och tel. 7.| Bra.
da Jf. art. 3, stk. 4, fig. 5 og tlf. 6.| Godt.
nb Jf. art. 3, fig. 4, tab. 5 og tlf. 6.| Bra.
fi Ks. kuv. 3, taul. 4, art. 5 ja puh. 6.| Hyvä.| Hän tulee klo 10.| Odota.
pl Zob. tab. 3, rozdz. 4, zał. 5, ryc. 6 i tel. 7.| Kosztuje 5 zł.| Tanio.
cs Viz čl. 3, písm. a), kap. 4, roč. 5 a tel. 6.| Stálo to 5 Kč.| Levné.| Viz s. 5.| Tam.
sk Pozri písm. a), tab. 3, kap. 4 a tel. 5.| Dobre.
sl Glej sl. 3, odst. 4, tab. 5 in str. 6.| Dobro.
hr Vidi sl. 3, tab. 4, čl. 5. Zakona i tel. 6.| Dobro.
hu Lásd táb. 3, fej. 4 és tel. 5.| Jó.
ro Vezi fig. 3, cap. 4, lit. a) și ap. 5.| Bine.
ru См. разд. 3, прил. 4, тел. 5 и изд. 6.| Были груши и т. д.| Потом все ушли.
uk Див. розд. 3, дод. 4, тел. 5 і стор. 6.| Так.
bg Вж. фиг. 3, табл. 4, гл. 5 и тел. 6.| Има круши и т.н.| После излязоха.
el Βλ. εικ. 3, κεφ. 4, άρθρ. 5 και παρ. 6.| Έχει μήλα κ.λπ.| Μετά φύγαμε.
tr Bkz. şek. 3, tab. 4, böl. 5 ve tel. 6.| İyi.
lt Žr. pav. 3, lent. 4 ir tel. 5.| Yra kriaušių ir t. t.| Tada išėjome.
lv Sk. att. 3, tab. 4 un tālr. 5.| Labi.
et Vt. joon. 3, tab. 4 ja tel. 5.| Hea.
mt Ara l-Art. 3 u fig. 4.| Tajjeb.
af Mnr. Botha en mev. Smit kom.| Hulle gaan.
is Sjá bls. 5.| Gott.
hi श्री जे.पी. नड्डा और स्व. शर्मा आए।| वह अच्छा है.| वह गया.
mr डॉ. बी.आर. आंबेडकर आले.| ते गेले.
hi वह आया धीरे-धीरे.| वह गया.
mr ते गेले दुपारी १०.३०.| ती गेली.
gu તે મા-બાપ.| તે ગયા.
bn এ.পি.জে. আব্দুল কালাম এলেন।| তিনি গেলেন।
te ఎన్.టి. రామారావు వచ్చారు.| ఆయన వెళ్ళారు.
gu એમ.કે. ગાંધી આવ્યા.| તે ગયા.
ta எம்.ஜி.ஆர். வந்தார்.| அவர் போனார்.
ta பேரா. குமார் வந்தார்.| அவர் போனார்.
hy Նա եկավ:| Հետո գնաց:
bo ང་འགྲོ།| ཁྱོད་སྡོད། །|ཀ།
zh “走吧。”|“好。”|他们走了。|他说：“好。我走了。”|她笑了。
ja 「え？本当？」と聞いた。|彼は「はい。そうです。」と言った。|「はい。|いいえ。
xx Dr. Who came.| He left ♪ and sang.| ♪ La la!| ♪ Oh
en The king died. [3]| His son ruled. [4, 5]| Nobody knew. [6–8]| (It rained. )| Hmm.| See it on tv.| P. S. Ann rang ext. 5.
fr " Il pleut. "| Elle rentra.| " Il neige ! "| Max rit.| Il a dit : " Viens. "| (...) Elle dort.| [...] J'y vais.
fr Il vend du pain, du lait, etc.| Julie paie.| Il y avait le roi Jean II.| D'autres vinrent.
lt „Lyja. “| Ji grįžo.| „Sninga ? “| Jonas liko namuose, skaitė ir pan.| Ona dirbo iki 2009 m. rugsėjo 5 d. Vilniuje.
et “ Sajab. ”| Ta jäi.| Ta ostis leiba, piima jne.| Mari maksis.| Kala kaalus 5 kg.| Ta oli 13.| Kuid St. Ives on kaugel.
nl ,,Het regent. ''| Zij bleef.| ,, Kom nu ! ''| Hij liep 5 km.| Jan v. Gogh leefde v. Chr. niet.
sk Rím (lat. Roma) je mesto.| Prišiel k nám.| Tu videl nám. Slobody.| Zomrel pápež Ján XXIII.| Po ňom prišiel Pavol VI.
pl Muzeum im. Reja stało tu na pocz. wojny.| Ewa (ur. 1990) waży 5 kg.| W 1999 r. Adam wyjechał.| Dała im.| Ale tylko raz.
pl Stary dom przy rynku zburzono w 1999 r.| Adam wyjechał.| Pytał o lit. b) umowy.
ru Он прыгнул на 8 м.| Ольга спросила, кто прыгнет, он или я.| Пётр (род. 1990) купил хлеб, соль и т. п.| Мария ждала.
uk Камінь (мал. 5) важить 9 т.| Ольга купила хліб, сіль і т. п.| Марія чекала.
bg Той срещна ген. Петров и арх. Иванова.| По-късно в 8 ч.| Петър дойде.| Роден е в XIX в.| Това е всичко.
be Ён жыў на вул. Купалы (рэж. Янка Лось).| Таксама там быў паэт Я. Колас.
el Ο κανονισμός αριθ. 5 ισχύει.| Αγόρασε ψωμί, γάλα κ.λπ.| Μαρία το είπε.
es Warner Bros. Pictures vive.| Nació ca. 1600.| Según Ana, sí.| El caso Pérez v. Gómez.| También otro.
is Ég þakka hv. þm. Jóni fyrir.| Hann fór út í.| Jón sá það, hún á.| Þetta er gott.
ga Tá sé i gCo. Chorcaí nó Co. Mhaigh Eo.| Chonaic Seán é.| Máire a dúirt í.| Is fíor.
da Han fik nummer 13.| Måske vinder cand. jur. Holm.
hr To je rekao papa Ivan XXIII.| Također je pisao u St. Louisu, itd.| Marko je šutio.
vi Nhà cao 9 m.| Ông ở TP. Huế.| Bà nói có ý.| Anh đi.
lv Viņai ir 40.| Bet viņš pirka maizi, pienu u.c.| Anna maksāja.
it Vedi l'art. 5 (att. 7).| Ha preso la lettera f.| Marco ride.
cs Přišel k nám.| Byl to pán z nám. Míru.
ro Cartea este de acest gen.| Un om a citit alin. b) din ea.
hy Նա ասաց. «Արի» (երեկ):| Արամը գնաց. Հետո նա եկավ:
hye_Armn Նա ասաց. Ես գնացի։| Նա եկավ։
hbs Rođen je 3. Maja 1990. godine.| Umro je.
fa او نان و… خرید.| او رفت…| آنها آمدند.
ja 東京へ行く!|京都だ。|本当?|漢字だ。|Yahoo!知恵袋で「行く!」と言う。|※走る!という曲。|早い!|このまま走る。
sv Han dog 44 f. Kr. i Rom.| Hon vann.
fi Caesar kuoli 44 e. Kr. Roomassa.
af Hy het 44 v. Chr. gesterf.
ro A murit în 44 d. Hr. la Roma.
en John Smith, a. k. a. Johnny, met Pres. Obama and Supt. Miller.
nl Hij sprak met J. v. d. Berg.
sl Podjetje d. o. o. Kranj.
es Vino Ud. Pérez con mons. López.
"""
TABLE = [line.split(" ", 1) for line in CASES.strip().split("\n")]


@pytest.mark.parametrize("language, marked", TABLE, ids=[f"{code}-{number}" for number, (code, _) in enumerate(TABLE)])
def test_sentences_end_where_a_reader_ends_them(language, marked):
    found = sentences(marked.replace("|", ""), language)
    assert [sentence.strip() for sentence in found] == [sentence.strip() for sentence in marked.split("|")]


TEXT = st.text(st.sampled_from('aB1 .!?…;:,“”»«"()\n\r\u2028।。؟\u00a0') | st.characters(), max_size=60)


@settings(deadline=None)
@given(TEXT, st.sampled_from(["", "en", "de-AT", "zh_Hans", "el"]))
@example("\r\n\n A. B.\n", "en")
def test_what_is_divided_loses_nothing(text, language):
    assert "".join(sentences(text, language)) == text
    whole = divided(text, lambda line: line, language)
    joined = whole.joined(whole.sentences, "en")
    assert re.sub(r"\s", "", joined) == re.sub(r"\s", "", text)
    around = re.compile(r"^\s+|\s*[\n\r\v\f\x85\u2028\u2029]\s*|\s+$")
    assert around.findall(joined) == around.findall(text)


def test_what_stands_around_lines_and_lines_without_words_stay():
    text = "  # One.\n\n- Two. Two.  \n\t* [x] Three.\n---\n> 3) Four.\n2. Five.\r\n\u3000😀\n"
    upper = divided(text, str.strip, "en")
    assert upper.sentences == ["One.", "Two.", "Two.", "Three.", "Four.", "Five."]
    assert divided("3. Oktober.\n4) Nein.", str.strip, "de").sentences == ["3. Oktober.", "Nein."]
    assert upper.joined(map(str.upper, upper.sentences), "de") == text.upper().replace("[X]", "[x]")
    assert "".join(map("".join, upper.placed("de"))) == text.partition("\r\n")[0], "what follows the last sentence is left"


def test_long_lines_take_time_in_proportion_to_their_length():
    """A quadratic search would take minutes."""
    for part in ("word ", "a. ", "! ", ".", " ", "\n", "。", "A. B. ", "(", '"', "»", "a. " + "- " * 40):
        assert "".join(sentences(part * 10_000, "de")) == part * 10_000


@pytest.mark.parametrize(
    ("code", "space"), [("nan", ""), ("ja_Jpan", ""), ("ja-Latn", " "), ("cmn_Latn", " "), ("th", " ")]
)
def test_what_stands_between_sentences_depends_on_the_script(code, space):
    assert divided("He ran. She ran.", str, "").joined(["1", "2"], code) == f"1{space}2"

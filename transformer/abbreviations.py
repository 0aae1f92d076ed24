"""Abbreviations and words that begin sentences, by language, for transformer/sentences.py.

Words stand as in the middle of a sentence. A language that is not here has the entry of "".
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The words of a language, separated by spaces."""

    never: str = ""  # abbreviations that end no sentence
    others: str = ""  # abbreviations that end a sentence if a word of `starts` follows
    numbered: str = ""  # abbreviations, or words, that end no sentence if a number follows
    starts: str = ""  # words that often begin a sentence and are no names


WORDS = {
    "en": Words(
        "Dr Mr Mrs Ms Mme Mlle Prof Sr Sra Messrs Rev Reg Hon Gen Col Maj Capt Cpt Lt Sgt Cpl Cmdr Adm Gov Sen Rep "
        "Pres Supt Insp Mt Ft Ste Fr cf vs viz ca approx incl excl esp resp v PS Assoc",
        "St Inc Ltd Co Corp Bros Jr Esq Ave Blvd Rd Dept Univ Assn est Ph.D al min max a.m p.m Hwy ed eds",
        "No Nos no nos Art Arts Sec Secs Sect Sects Vols pp Ch Eq Ref Res Ver ver Ex para paras cl ll n suppl Matt Op "
        "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec v ext pop",
        "The A An He She It We You They I This That These Those There Here But And So Then When If In On At For My His "
        "Her Its Our Your Their What Who How Why Where After Before Now No Yes However Well As By All To Just Not Do "
        "Is Are From With While Also Some Although Even Maybe Because Every Once Finally",
    ),
    "de": Words(
        "Dr Prof Hr Hrn Fr Frl Fa Ing Dipl Mag St Sr Kard Bf z.B d.h u.a z.T z.Zt i.d.R m.E o.ä o.Ä i.A i.V u.U v.a "
        "s.o s.u sog bzw vgl ca evtl ggf inkl exkl zzgl insb bes lit geb gest gegr ehem lt gem Hl hl a.d a.M med phil "
        "jur vet rer nat em mult Dipl.-Ing Dr.-Ing v n",
        "usw u.s.w usf Mio Mrd Std Min Sek Co Jh Jhd Chr v.Chr n.Chr Aufl Hrsg Str a b c d e f g h i k l m o p q r s t "
        "u w z",
        "S Anm Kap Abb Tab Nr Bd Abs Art Ziff Tel Pos Taf Hausnr Postf Jan Feb Mrz Apr Jun Jul Aug Sep Sept Okt Nov Dez",
        "Der Die Das Den Dem Des Ein Eine Einer Eines Er Sie Es Wir Ich Ihr Dann Danach Da Dort Hier Doch Aber Und "
        "Oder Denn Nun Jetzt Dieser Diese Dieses Sein Seine Ihre Mein Meine Unser In Im Am An Auf Bei Mit Nach Von Vor "
        "Zu Zum Für Als Wenn Weil So Auch Nur Was Wer Wie Wo Warum Man Heute Gestern Morgen Später Kein Keine Nein Ja "
        "Während Leider Also Seit Über Dies Habe Bis Viele Nachdem Alles Außerdem Dazu Laut Sehr Durch Damit "
        "Vielleicht Unter Zudem Deshalb Allerdings Mehrere Einige Dabei Dennoch Obwohl",
    ),
    "fr": Words(
        "M MM Mme Mmes Mlle Mlles Dr Pr Me Mgr St Ste cf p.ex c.-à-d c.à.d env av apr vs J.-C",
        "Cie éd ann hab",
        "n no nos p pp t chap tél al coll liv réf éq sect janv févr avr juil sept oct nov déc",
        "Le La Les L Un Une Des Il Elle Ils Elles On Nous Vous Je Tu Ce Cet Cette Ces Mais Et Puis Alors Donc En Dans "
        "Sur À Au Aux Pour Par Avec Son Sa Ses Mon Ma Mes Leur Quand Si Qui Que Où Comment Pourquoi Ensuite Après "
        "Selon Chez Comme Cependant Plus Cela Depuis Ainsi Avant Tout Pendant Toutefois Chaque Enfin Même C J D N S Qu",
    ),
    "es": Words(
        "sr sra sres srta dr dra dres D Dña excmo excma ilmo ilma prof profa lic ing arq gral cnel cap tte sto sta fr "
        "mons Ud Uds Vd Vds p.ej ej EE JJ FF CC aprox avda av d ca",
        "Cía S.A EE.UU JJ.OO FF.AA CC.AA a.C d.C a.m p.m ed Bros",
        "n núm pág págs párr lib ref apdo inc ec sec No",
        "El La Los Las Un Una Lo Él Ella Ellos Ellas Nosotros Yo Tú Usted Se Me Te Su Sus Mi Mis Este Esta Estos Esto "
        "Ese Esa Eso Pero Y Entonces Luego Después En De Por Para Con Como Cuando Si No Sí Qué Quién Dónde Hoy Ayer "
        "Sin A Es Durante Fue También Según Al Además Mientras Desde Tras Aunque Entre Más Así Cada Estas Ya Todos",
    ),
    "it": Words(
        "sig sigg sig.ra sig.na dott dott.ssa dr prof prof.ssa avv ing arch geom rag on sen gen mons S Ss es p.es ca lett",
        "ecc S.p.A S.r.l a.C d.C",
        "n nn p pp pag pagg cap num sec lib rif co ed eq sez all artt att",
        "Il Lo La I Gli Le L Un Uno Una Egli Lui Lei Loro Noi Voi Io Tu Si Ma E Poi Allora Quindi Dopo In Di A Da Con "
        "Su Per Questo Questa Quello Quella Suo Sua Mio Mia Quando Se Non Sì Che Chi Dove Come Oggi Ieri È Nel Quale "
        "Sono Quanto Anche Nella Al Dal Ci Alla Mi Tutti Ogni Perché Nei Era Così Qui Tra Inoltre Mentre Ora",
    ),
    "pt": Words(
        "sr sra srs srta dr dra prof profa eng arq gen cel cap D exmo exma S sto sta p.ex ex aprox av apto",
        "Cia Ltda S.A a.C d.C ed",
        "n nº séc p pp pág págs núm cap liv ref inc eq sec",
        "O A Os As Um Uma Ele Ela Eles Elas Nós Eu Tu Você Vocês Se Seu Sua Meu Minha Este Esta Isto Esse Essa Isso "
        "Mas E Então Depois Em No Na De Por Para Com Como Quando Não Sim Que Quem Onde Hoje Ontem Segundo É Já Além "
        "Assim Apesar Foi Neste Após São Ao Entre Também Nos Ainda Foram Até Durante Embora Agora Só",
    ),
    "nl": Words(
        "dr drs prof mr ir ing dhr mevr mw Dr Drs Prof Mr Ir Ing Dhr Mevr Mw St bijv bv d.w.z m.a.w o.a m.b.t i.v.m "
        "t.a.v t.o.v t.g.v z.g zgn ca resp vgl incl excl nl v n",
        "enz e.d a.u.b blz jl mln mld min max v.Chr n.Chr",
        "nr nrs p pp afb jan feb mrt apr aug sept okt nov dec",
        "De Het Een Hij Zij Ze Wij We Ik Jij Je U Dit Dat Deze Die Er Daar Hier Maar En Dan Toen Daarna In Op Aan Bij "
        "Met Van Voor Naar Als Wanneer Zijn Haar Mijn Ons Wat Wie Waar Hoe Nu Vandaag Nee Ja Ook Na Door Zo Tijdens Om "
        "Volgens Omdat Hoewel Veel Sommige Onder Uit Daarnaast Daarom Tot Bovendien Toch Al",
    ),
    "sv": Words(
        "dr prof hr fr S:t S:ta t.ex t ex bl.a bl a d.v.s dvs s.k m.a.o p.g.a pga resp ca jfr Kungl Tekn inkl exkl f.d "
        "fr.o.m t.o.m i.e",
        "m.m osv m.fl f.Kr e.Kr st milj mdr f",
        "nr s sid kap kl bil jan feb apr aug sept okt nov dec",
        "Den Det De En Ett Han Hon Vi Jag Du Ni Man Detta Denna Dessa Men Och Så Då Sedan Där Här I På Av För Med Till "
        "När Om Hans Hennes Min Vår Vad Vem Var Hur Nu Idag Nej Ja Att Under Genom Är Vid Även Inte Varför Många Har "
        "Därför Från Först Kan Också Medan Dessutom Varje",
    ),
    "da": Words(
        "dr prof hr fr f.eks fx bl.a d.v.s dvs s.k såk p.g.a pga ca jf inkl ekskl fhv sml pr St Skt phil cand jur "
        "polit scient kgl Vilh",
        "m.m osv m.fl mv f.Kr e.Kr mio mia kr f",
        "nr s stk kap kl pkt tlf jan feb mar apr jun jul aug sep sept okt nov dec",
        "Den Det De En Et Han Hun Vi Jeg Du I Man Dette Denne Disse Men Og Så Da Der Her På Af For Med Til Når Om Hans "
        "Hendes Min Vores Hvad Hvem Hvor Hvordan Nu Nej Ja At Hvis Er Ikke Derfor Som Måske Efter Begge Alligevel",
    ),
    "nb": Words(
        "dr prof hr fr f.eks bl.a d.v.s dvs s.k p.g.a pga ca jf inkl ekskl tidl St",
        "m.m osv m.fl mv f.Kr e.Kr mill mrd kr f",
        "nr s kap kl pkt tlf jan feb apr jun jul aug sep sept okt nov des",
        "Den Det De En Et Ei Han Hun Vi Jeg Du Man Dette Denne Disse Men Og Så Da Der Her På Av For Med Til Når Om "
        "Hans Hennes Min Vår Hva Hvem Hvor Hvordan Nå Nei Ja I At Hvis Er Ikke Derfor Som Etter Også Alle Noen Mange "
        "Fra Under Ved",
    ),
    "fi": Words(
        "esim ts t.s ns mm m.m tri prof hra rva nti ko k.o ao a.o em ed ent tod n vrt ks sis synt",
        "jne yms ym eKr jKr mrd milj min",
        "s nro nr klo kuv taul mom puh",
        "Hän He Se Ne Tämä Nämä Me Minä Sinä Te Mutta Ja Sitten Kun Jos Siellä Täällä Nyt Mitä Kuka Missä Miksi Niin "
        "Vaikka Ei Kyllä On En Tämän Sen Hänen Olen Näin Tai Lisäksi Ehkä Onko Kaikki Siksi Miten Tässä Myös Samalla "
        "Koska Mikä Sitä Siinä",
    ),
    "pl": Words(
        "dr prof mgr inż hab lek ks św o p płk gen kpt por ul al pl os np tj tzn tzw m.in ww ok poł zob wg ds paraf "
        "proj asp nadkom podkom pocz lit",
        "im itd itp r w n.e p.n.e godz tys str t wyd pt jw",
        "nr s ust poz rys ryc rozdz zał lit ur",
        "To Ten Ta Te On Ona Ono Oni My Ja Ty W We Na Z Ze Do Po Od Dla Przy Ale I A Potem Wtedy Jednak Gdy Kiedy "
        "Jeśli Nie Tak Jest Był Była Co Kto Gdzie Jak Dlaczego Jego Jej Ich Czy O Może Teraz Dlatego Jeszcze Bo Nawet "
        "Już Przez Jeżeli Dziś Wszyscy Za Jestem Bardzo Są Według Podczas Tam",
    ),
    "cs": Words(
        "dr prof doc ing mgr MUDr JUDr PhDr RNDr Ing Mgr Bc sv p pí sl např tj tzv tzn mj cca vč resp popř ul písm",
        "nám atd apod aj st n.l př.n.l hod tis mil mld s.r.o a.s",
        "č čís čl s str odst obr kap roč příl vyd ust bod pozn",
        "Ten Ta To Ti On Ona Ono Oni My Já Ty V Ve Na Z Ze Do Po Od Pro Při Ale A I Pak Potom Když Pokud Ne Ano Je Byl "
        "Byla Co Kdo Kde Jak Proč Jeho Její Jejich Tak K Za Bylo Proto Jsou O Tento Podle Během Už Také S Možná Není "
        "Dnes Nikdy Poté Protože Toto U Byly Nic Že",
    ),
    "ru": Words(
        "г-н г-жа гр проф акад доц ул пл пр просп пер наб д кв корп стр св т.е т.н т.к см ср напр о оз р",
        "г гг в вв т.д т.п др пр н.э руб коп тыс млн млрд ч мин сек стр т м шт им",
        "№ с гл рис табл ст п пп тел разд прил изд вып оф илл абз ок род ум макс",
        "Он Она Оно Они Мы Я Ты Вы Это Этот Эта Эти Тот Та Те В На По С Из От До Для При Но И А Потом Затем Когда Если "
        "Не Да Нет Что Кто Где Как Почему Его Её Их Там Здесь У Вот После Так Все Однако Ну Поэтому За К Теперь Мне "
        "Чтобы Кроме Даже То Очень Иногда Ещё Сейчас Во Всё Тогда",
    ),
    "uk": Words(
        "п проф акад доц вул пл просп пров м с буд кв ім св т.зв див пор напр тобто",
        "р рр ст т.д т.п ін н.е грн коп тис млн млрд год хв сек",
        "№ гл рис табл п пп тел розд дод вид вип оф стор корп мал",
        "Він Вона Воно Вони Ми Я Ти Ви Це Цей Ця Ці Той Та Ті В У На По З Із Від До Для При Але І А Потім Коли Якщо Не "
        "Так Ні Що Хто Де Як Чому Його Її Їх Там Тут За Після Про Під Всі Тому Крім Бо Також Разом Сьогодні Тільки Чи "
        "То Щоб Навіть Можна Ще",
    ),
    "tr": Words(
        "Dr Prof Doç Yrd Av Sn Hz St Alb Gen Org Bkz bkz örn Örn vd yy",
        "vb vs M.Ö M.S A.Ş Ltd Şti Cad Sok Mah Apt",
        "No no s sf md şek böl fık sy",
        "Bu Şu O Onlar Biz Ben Sen Siz Bir Ama Ve Sonra Daha Orada Burada Eğer Hayır Evet Ne Kim Nerede Nasıl Neden "
        "Ancak Her Çünkü Ayrıca Yine Şimdi Bizim Böyle Çok Bunlar Onun Yani Sadece Hiç Bunun Benim Hatta",
    ),
    "el": Words(
        "κ κκ κα δρ καθ αγ π.χ δηλ βλ λ.χ τ.μ οδ",
        "κ.λπ κλπ κ.ά κ.ο.κ μ.μ π.μ π.Χ μ.Χ εκ δισ χιλ",
        "αρ σελ σ άρ τ άρθρ παρ εικ πίν κεφ τηλ τόμ εδ σχ αριθ",
        "Ο Η Το Οι Τα Αυτός Αυτή Αυτό Αλλά Και Τότε Μετά Όμως Όταν Αν Δεν Ναι Όχι Τι Ποιος Πού Πώς Γιατί Σήμερα Σε Με "
        "Για Από Θα Είναι Επίσης Στο Ωστόσο Δε Στην Κατά Στις Τον Την Εάν Έτσι Ως Τώρα Όπως Εδώ Ήταν Να Μόνο Ακόμα "
        "Αφού Εκεί",
    ),
    "hu": Words(
        "dr Dr prof ifj id özv br gr St pl ill ún kb vö u.n",
        "stb i.sz i.e kft Kft Rt Zrt u ú krt db",
        "sz o old táb fej köt bek",
        "A Az Ez Egy Ő Ők De És Aztán Nem Így Ennek Ha Mint Ezért Pedig Bár Ma S Azt Minden Ami Ezek Amikor Persze Aki "
        "Ezt Még Mert Én Már",
    ),
    "ro": Words(
        "dl dna dra d-l d-na dr prof ing acad col Sf Str str de.ex d.ex p.ex cca aprox lit alin",
        "ș.a î.Hr d.Hr a.m p.m S.A S.R.L ș.a.m.d n gen",
        "nr pag p alin vol sec cap et ap ed",
        "El Ea Ei Ele Noi Eu Tu Voi Un O Acest Această Dar Și Apoi În La Pe Cu De Când Dacă Nu Da Ce Cine Unde Cum Se "
        "Pentru Din Este După A Prin Totuși Aceasta Am Tot Între Era Deoarece Sunt Până Ca Iar Atunci Încă Să Acum",
    ),
    "hi": Words(  # of the scripts of India; initials are called as in English
        "बी सी डी एफ जी एच आई जे के एल एम एन पी क्यू आर एस टी यू वी डब्ल्यू एक्स वाई ज़ेड डॉ डा श्री श्रीमती प्रो पं स्व "
        "सं कु मो रु ई.पू ডা ড শ্রী ડૉ ડો શ્રી ਡਾ ਸ੍ਰੀ திரு திருமதி பேரா డా ప్రొ శ్రీ ಡಾ ಶ್ರೀ ഡോ ശ്രീ",
    ),
    "sk": Words(
        "dr prof doc ing mgr PhDr JUDr MUDr RNDr sv napr tj tzv tzn resp príp ul plk kpt písm",
        "nám atď apod ap",
        "č čl str s ods obr kap zv roč príl vyd pozn",
        "V Po Na Jeho Z Od Pri Bol Podľa To Počas Ako Aj Potom Tento Je Keď Okrem Vo S Za Toto Napriek A Do K Tam Ak "
        "Tu Už On Ona Oni My Ja Ale Nie",
    ),
    "sl": Words(
        "dr prof doc mag inž sv npr tj t.i oz ul cf prim",
        "itd ipd idr",
        "št str čl tč sl pogl zv odst toč",
        "V Na Če To In Po Za Pri Tudi Tako Ta Ko Z Zato Ne Ker A Poleg Kot Da Ob Pred Med Ali S Od Do Vendar Potem Kaj "
        "On Ona Mi Jaz",
    ),
    "hr": Words(  # and Serbian, in both scripts
        "dr sc iur prof doc mr dipl ing inž sv gosp gđa gđica npr tj tzv odn ul akad o др проф доц мр дипл инж св госп "
        "гђа гђица нпр тј тзв одн ул акад о",
        "itd itn итд итн",
        "br str čl st sl pogl toč бр стр чл ст",
        "U Međutim Prema To Na On Ako Nakon Također Takođe Iako Danas Od Kao Kada Da S Za Ne Oni Mi Ali A I Kako No "
        "Ona Zato Ovaj Ovo У Међутим Према То На Он Ако После Такође Данас Кад Да За Не Они Ми Али И Како Она Зато Ово",
    ),
    "bg": Words(
        "проф акад доц инж ул бул пл кв гр св напр т.е т.нар вж срв ген полк серж гл.серж арх еп изд вх ал о р с",
        "т.н др в",
        "№ чл ал стр бр фиг табл гл тел ет ап бл",
        "Той Тя То Те Ние Аз Ти Вие Това Този Тази Тези В На От До За При Но И А После Тогава Когато Ако Не Да Какво "
        "Кой Къде Как По След Според С Ще Като През Всички Никой Много Всеки Сега Защото Затова Още Днес Кои Тук Само "
        "Така Преди Вече",
    ),
    "lv": Words(
        "dr prof akad inž piem t.i t.s sk",
        "u.c tml",
        "nr lpp att nod sēj tālr pkt mob",
        "Un Es Bet Kā Ja Viņš Tā Tas Vai Lai Pēc Nu Par Viņa Man Savukārt Tāpēc Tu Kad Mēs No Taču Ar Arī Tad Uz Viņi "
        "Tur Tomēr Tikai Tagad Kas",
    ),
    "lt": Words(
        "dr prof doc akad inž gyd gim pvz žr plg t.y vad d",
        "t.t pan",
        "nr p pav lent sk val",
        "Tada Tai Jis Ji Jie Jos Mes Aš Bet Ir Jeigu O Tačiau Todėl Ar Iš Be Jei Kad Kai Taip Ne Į Net Tik Dėl Nors "
        "Dabar Iki Kas Tas Pagal Su Dar Kaip",
    ),
    "et": Words(
        "dr prof hr pr vt nt näit st n-ö",
        "jne jt jms vms sünd a",
        "lk nr joon ptk kd lg",
        "Kui Ja See Aga Ma Ta Nii Kas Et Ei Ka Siis Nüüd Kuid Mis Samas Meie Mul Seda Või Miks Seega Nagu Nad Need On "
        "Me Tema Selle Praegu Eks Sest",
    ),
    "is": Words(
        "dr prof hr sr frk t.d þ.e sbr skv hv hæstv þm",
        "",
        "nr bls kl",
        "Ég Það Hann Við Þetta Þá Í En Á Hún Ef Þegar Að Þar Og Mér Þannig Hvað Þeir Því Nú Hér Með Svo Ekki Eftir Er "
        "Einnig Síðan Já Nei Frá",
    ),
    "eu": Words(
        "",
        "etab",
        "or zk",
        "Baina Ez Eta Orain Zer Bestalde Hori Gainera Bere Atzo Hala Gaur Nik Beraz Gure Oso Gero Horrela Orduan Nola Han",
    ),
    "ga": Words(
        "Co gCo Dr An-tUas Uas Iml",
        "srl",
        "lch lgh uimh",
        "Is Ach An Agus Ar Ba Níor Mar Cé Nuair Sa Ag Má I A Sin Dá Go Conas De Le Gan Ní Tá Bhí Na",
    ),
    "be": Words(
        "вул пл пр пр-т св гл рэж праф акад дац в р о нар г.зн",
        "г гг ст тыс млн руб кап г.д т.п інш н.э ім",
        "арт п мал нар сяр с тэл",
        "У Як На А Мы З Гэта Але Што І Пасля Калі Пра Ужо Не Ці Яны Па Да Я Сёння Гэты Таксама Ён За Пры Таму Так Тут",
    ),
    "ca": Words(
        "sr sra srta dr dra prof av pl st sta p.ex aprox",
        "",
        "n núm pàg pàgs p cap",
        "El La Els Les L Un Una En Per Amb Com Quan Si No Sí Què Qui On Avui Ahir Aquest Aquesta Això Però I Després "
        "També Segons Ell Ella",
    ),
    "vi": Words(
        "Tp TX ThS TS PGS GS BS KS LS NSND NSƯT",
        "TP",
        "",
        "Tôi Nhưng Những Và Trong Các Nếu Đó Không Từ Sau Họ Đến Theo Còn Rồi Chỉ Vậy Thế Để Đây Với Như Khi Anh Ông Bà",
    ),
    "id": Words(
        "Dr Drs Dra Prof Ir Tn Ny Bpk Sdr Jl Pte Tbk Tb",
        "Co Ltd dll",
        "No no hlm",
        "Pada Ia Menurut Namun Sementara Di Dalam Dia Dengan Setelah Untuk Bagaimana Dari Mereka Ini Itu Apakah Kita "
        "Ketika Apa Kemudian Karena Dan Yang Sejak Kami Saya Jika Tetapi Tapi",
    ),
    "af": Words(
        "mnr mev mej dr prof ds adv bv bl d.w.s m.b.t o.a",
        "ens",
        "nr p afd",
        "Die Ons Dit In Hierdie Ek As Om Jy Maar Daar Hulle Wanneer Wat En Op Soos Alle Hy Sy Dan Toe Nou Nee",
    ),
    "sw": Words("Bw Bi Dkt Mh Prof Mt", numbered="Na Uk"),
    "ar": Words("د أ م ص ت ق.م أ.د"),
    "": Words("Dr Mr Mrs Ms Mme Mlle Prof Sr Sra", numbered="No Nr nr p"),
}
EVERYWHERE = Words(
    "P.S i.e e.g", "al etc St Bros v", "art fig figs tab tel fax par vol", ""
)  # of all languages: et al., fig. 3
# Abbreviations of `others` that end a sentence if a word with a capital letter follows
CLOSING = (
    "etc ecc enz ens usw usf u.s.w jne jms vms yms ym itd itp itn ipd idr atd atď apod ap osv m.m m.fl mv stb etab vb vs "
    "pan t.t u.c tml dll srl т.д т.п т.н др пр ін г.д інш итд итн κ.λπ κλπ κ.ά κ.ο.κ ș.a ș.a.m.d"
)
# Languages with the words of another
SAME = {"nn": "nb", "bs": "hr", "sr": "hr", "mk": "bg", "ms": "id"}
SAME |= dict.fromkeys(["mr", "ne", "bn", "gu", "pa", "ta", "te", "kn", "ml"], "hi")

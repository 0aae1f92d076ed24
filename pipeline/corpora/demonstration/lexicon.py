"""The words of the demonstration corpus except its verbs, in the notation of inflection.py.

In each context of the grammar, an English word has one German translation. Any other translation counts as wrong.
Nouns and adjectives are grouped by kind. Verbs select kinds of nouns, so that the sentences make sense.
"""

from pipeline.corpora.demonstration.inflection import Adjective, Determiner, Noun, Pair, adjective, entries, noun


def pairs(text: str) -> list[Pair]:
    return [Pair(*entry.split(": ")) for entry in entries(text)]


KINDS = {
    "person": """man/men: der Mann, Mannes, Männer; woman/women: die Frau, Frauen; boy: der Junge, Jungen, Jungen;
        child/children: das Kind, Kindes, Kinder; girl: das Mädchen, Mädchens, Mädchen; guest: der Gast, Gastes, Gäste;
        teacher: der Lehrer, Lehrers, Lehrer; doctor: der Arzt, Arztes, Ärzte; nurse: die Pflegerin, Pflegerinnen;
        student: der Student, Studenten, Studenten; neighbour: der Nachbar, Nachbarn, Nachbarn;
        friend: der Freund, Freundes, Freunde; colleague: der Kollege, Kollegen, Kollegen;
        waiter: der Kellner, Kellners, Kellner; singer: die Sängerin, Sängerinnen; boss: der Chef, Chefs, Chefs;
        actress: die Schauspielerin, Schauspielerinnen; police officer: der Polizist, Polizisten, Polizisten;
        engineer: der Ingenieur, Ingenieurs, Ingenieure; journalist: die Journalistin, Journalistinnen;
        scientist: die Wissenschaftlerin, Wissenschaftlerinnen; lawyer: die Anwältin, Anwältinnen;
        mayor: die Bürgermeisterin, Bürgermeisterinnen; author: die Autorin, Autorinnen;
        pilot: der Pilot, Piloten, Piloten; farmer: der Bauer, Bauern, Bauern; baker: der Bäcker, Bäckers, Bäcker;
        painter: der Maler, Malers, Maler; driver: der Fahrer, Fahrers, Fahrer;
        tourist: der Tourist, Touristen, Touristen; customer: der Kunde, Kunden, Kunden;
        queen: die Königin, Königinnen""",
    "relative": """brother: der Bruder, Bruders, Brüder; sister: die Schwester, Schwestern; mother: die Mutter, Mütter;
        father: der Vater, Vaters, Väter; son: der Sohn, Sohnes, Söhne; daughter: die Tochter, Töchter;
        uncle: der Onkel, Onkels, Onkel; aunt: die Tante, Tanten; grandmother: die Großmutter, Großmütter;
        grandfather: der Großvater, Großvaters, Großväter""",
    "animal": """dog: der Hund, Hundes, Hunde; cat: die Katze, Katzen; horse: das Pferd, Pferdes, Pferde;
        bird: der Vogel, Vogels, Vögel""",
    "text": """book: das Buch, Buches, Bücher; letter: der Brief, Briefes, Briefe; newspaper: die Zeitung, Zeitungen;
        article: der Artikel, Artikels, Artikel; report: der Bericht, Berichts, Berichte;
        poem: das Gedicht, Gedichts, Gedichte; novel: der Roman, Romans, Romane; message: die Nachricht, Nachrichten;
        story: die Geschichte, Geschichten; contract: der Vertrag, Vertrags, Verträge;
        recipe: das Rezept, Rezepts, Rezepte""",
    "object": """key: der Schlüssel, Schlüssels, Schlüssel; lamp: die Lampe, Lampen;
        knife/knives: das Messer, Messers, Messer; picture: das Bild, Bildes, Bilder;
        suitcase: der Koffer, Koffers, Koffer; bag: die Tasche, Taschen;
        umbrella: der Regenschirm, Regenschirms, Regenschirme; camera: die Kamera, Kameras;
        ball: der Ball, Balls, Bälle; box: die Kiste, Kisten; present: das Geschenk, Geschenks, Geschenke;
        ticket: die Fahrkarte, Fahrkarten; chair: der Stuhl, Stuhls, Stühle; clock: die Uhr, Uhren;
        map: die Landkarte, Landkarten; pencil: der Bleistift, Bleistifts, Bleistifte;
        mirror: der Spiegel, Spiegels, Spiegel""",
    "vessel": """bottle: die Flasche, Flaschen; glass: das Glas, Glases, Gläser; cup: die Tasse, Tassen;
        plate: der Teller, Tellers, Teller; vase: die Vase, Vasen""",
    "machine": """computer: der Computer, Computers, Computer; radio: das Radio, Radios, Radios;
        machine: die Maschine, Maschinen; television: der Fernseher, Fernsehers, Fernseher;
        printer: der Drucker, Druckers, Drucker; heater: die Heizung, Heizungen;
        telephone: das Telefon, Telefons, Telefone""",
    "vehicle": """car: das Auto, Autos, Autos; bicycle: das Fahrrad, Fahrrads, Fahrräder; boat: das Boot, Bootes, Boote;
        ship: das Schiff, Schiffes, Schiffe; motorbike: das Motorrad, Motorrads, Motorräder;
        truck: der Lastwagen, Lastwagens, Lastwagen; taxi: das Taxi, Taxis, Taxis""",
    "transport": """bus/buses: der Bus, Busses, Busse; train: der Zug, Zuges, Züge;
        underground train: die U-Bahn, U-Bahnen; tram: die Straßenbahn, Straßenbahnen""",
    "clothing": """coat: der Mantel, Mantels, Mäntel; shirt: das Hemd, Hemdes, Hemden; jacket: die Jacke, Jacken;
        hat: der Hut, Hutes, Hüte; dress: das Kleid, Kleides, Kleider; skirt: der Rock, Rocks, Röcke""",
    "food": """apple: der Apfel, Apfels, Äpfel; cake: der Kuchen, Kuchens, Kuchen; soup: die Suppe, Suppen;
        egg: das Ei, Eies, Eier; potato/potatoes: die Kartoffel, Kartoffeln; tomato/tomatoes: die Tomate, Tomaten;
        salad: der Salat, Salats, Salate; sausage: die Wurst, Würste""",
    "drink": """coffee: der Kaffee, Kaffees, -; tea: der Tee, Tees, -; milk: die Milch, -;
        water: das Wasser, Wassers, -; juice: der Saft, Safts, -; beer: das Bier, Biers, -""",
    "building": """house: das Haus, Hauses, Häuser; school: die Schule, Schulen; church: die Kirche, Kirchen;
        museum: das Museum, Museums, Museen; hospital: das Krankenhaus, Krankenhauses, Krankenhäuser;
        hotel: das Hotel, Hotels, Hotels; factory: die Fabrik, Fabriken; library: die Bibliothek, Bibliotheken;
        shop: der Laden, Ladens, Läden; theatre: das Theater, Theaters, Theater; office: das Büro, Büros, Büros;
        restaurant: das Restaurant, Restaurants, Restaurants; castle: das Schloss, Schlosses, Schlösser;
        tower: der Turm, Turms, Türme""",
    "area": """garden: der Garten, Gartens, Gärten; kitchen: die Küche, Küchen; park: der Park, Parks, Parks;
        room: das Zimmer, Zimmers, Zimmer; city: die Stadt, Städte; village: das Dorf, Dorfes, Dörfer;
        forest: der Wald, Waldes, Wälder""",
    "stop": """station: der Bahnhof, Bahnhofs, Bahnhöfe; airport: der Flughafen, Flughafens, Flughäfen;
        lake: der See, Sees, Seen; border: die Grenze, Grenzen""",
    "surface": """table: der Tisch, Tisches, Tische; shelf/shelves: das Regal, Regals, Regale;
        sofa: das Sofa, Sofas, Sofas; desk: der Schreibtisch, Schreibtisches, Schreibtische;
        bed: das Bett, Bettes, Betten; bench: die Bank, Bänke""",
    "opening": "door: die Tür, Türen; window: das Fenster, Fensters, Fenster; gate: das Tor, Tores, Tore",
    "event": """meeting: die Sitzung, Sitzungen; concert: das Konzert, Konzerts, Konzerte; party: die Feier, Feiern;
        exhibition: die Ausstellung, Ausstellungen; course: der Kurs, Kurses, Kurse; wedding: die Hochzeit, Hochzeiten;
        conference: die Konferenz, Konferenzen; exam: die Prüfung, Prüfungen; game: das Spiel, Spiels, Spiele;
        lecture: der Vortrag, Vortrags, Vorträge; trip: die Reise, Reisen""",
    "matter": """problem: das Problem, Problems, Probleme; question: die Frage, Fragen; answer: die Antwort, Antworten;
        idea: die Idee, Ideen; plan: der Plan, Plans, Pläne; decision: die Entscheidung, Entscheidungen;
        mistake: der Fehler, Fehlers, Fehler; solution: die Lösung, Lösungen; project: das Projekt, Projekts, Projekte;
        rule: die Regel, Regeln; law: das Gesetz, Gesetzes, Gesetze; result: das Ergebnis, Ergebnisses, Ergebnisse""",
    "weather": """rain: der Regen, Regens, -; storm: der Sturm, Sturms, -; fog: der Nebel, Nebels, -;
        snow: der Schneefall, Schneefalls, -""",
    "measure": """price: der Preis, Preises, Preise; rent: die Miete, Mieten; temperature: die Temperatur, Temperaturen;
        CO2 level: der CO2-Wert, CO2-Werts, CO2-Werte; oil price: der Ölpreis, Ölpreises, Ölpreise""",
}
NOUNS = {kind: [noun(entry, kind) for entry in entries(text)] for kind, text in KINDS.items()}

CITIES = """Berlin: Berlin; Hamburg: Hamburg; Munich: München; Cologne: Köln; Vienna: Wien; Zurich: Zürich;
    Paris: Paris; Rome: Rom; London: London; Prague: Prag; Dresden: Dresden; Geneva: Genf"""
TOWNS = pairs(CITIES)

# The parts of compounds. `+` stands for the first part. The last part determines the German gender. German compounds in
# HYPHENED have a hyphen, except those with "Presse" (Pressekonferenz).
JOINED = {
    "person": ("music: Musik; history: Geschichts; sports: Sport", "teacher: der +lehrer, +lehrers, +lehrer"),
    "text": ("school: Schul; art: Kunst; history: Geschichts; music: Musik", "book: das +buch, +buches, +bücher"),
    "event": ("music: Musik; language: Sprach; computer: Computer; dance: Tanz", "course: der +kurs, +kurses, +kurse"),
    "building": ("music: Musik; language: Sprach; dance: Tanz; art: Kunst", "school: die +schule, +schulen"),
    "machine": ("coffee: Kaffee; washing: Wasch; sewing: Näh", "machine: die +maschine, +maschinen"),
}
HYPHENED = {
    "person": ("EU: EU; UN: UN; IT: IT; TV: TV", "expert: der +-Experte, +-Experten, +-Experten"),
    "text": ("EU: EU; UN: UN; US: US; CO2: CO2", "report: der +-Bericht, +-Berichts, +-Berichte"),
    "event": ("EU: EU; UN: UN; IT: IT; press: Presse", "conference: die +-Konferenz, +-Konferenzen"),
    "matter": (
        "EU: EU; UN: UN; CO2: CO2; US: US",
        "law: das +-Gesetz, +-Gesetzes, +-Gesetze; rule: die +-Regel, +-Regeln",
    ),
}
LINKS = "line: die +-Linie, +-Linien; flight: der +-Flug, +-Fluges, +-Flüge; express: der +-Express, +-Expresses, -"


def compound(first: Pair, last: str, kind: str) -> Noun:
    english, german = last.split(": ")
    if first.german == "Presse":
        german = german.replace("+-K", "+k")
    return noun(f"{first.english} {english}: {german.replace('+', first.german)}", kind)


def compounds(table: dict[str, tuple[str, str]]) -> dict[str, list[Noun]]:
    return {
        kind: [compound(first, last, kind) for first in pairs(firsts) for last in entries(lasts)]
        for kind, (firsts, lasts) in table.items()
    }


COMPOUNDS = {kind: compounds(JOINED).get(kind, []) + compounds(HYPHENED).get(kind, []) for kind in KINDS}
ROUTES = pairs("east-west: Ost-West; north-south: Nord-Süd")
ROUTES += [Pair(f"{a.english}-{b.english}", f"{a.german}-{b.german}") for a in TOWNS for b in TOWNS if a is not b]
COMPOUNDS["link"] = [compound(route, last, "link") for route in ROUTES for last in entries(LINKS)]
LINES = [noun for noun in COMPOUNDS["link"] if noun.english.endswith(" line")]

THING = """new, newer: neu, neuer; old, older: alt, älter; beautiful, more beautiful: schön, schöner;
    big, bigger: groß, größer; small, smaller: klein, kleiner; expensive, more expensive: teuer, teurer;
    cheap, cheaper: billig, billiger"""
COLOUR = "red: rot; blue: blau; green: grün; black: schwarz; white: weiß; grey: grau; yellow: gelb"
PERSON = """young, younger: jung, jünger; old, older: alt, älter; friendly, friendlier: freundlich, freundlicher;
    tired: müde; rich, richer: reich, reicher; poor, poorer: arm, ärmer; intelligent: intelligent;
    hard-working: fleißig; famous: berühmt; strict, stricter: streng, strenger; curious: neugierig; nervous: nervös;
    polite: höflich; patient: geduldig; happy, happier: glücklich, glücklicher; sad: traurig; sick: krank;
    healthy, healthier: gesund, gesünder; proud: stolz; angry: wütend; lazy, lazier: faul, fauler;
    brave, braver: mutig, mutiger; lonely: einsam; hungry: hungrig"""
TEXT = """new, newer: neu, neuer; old, older: alt, älter; long, longer: lang, länger; short, shorter: kurz, kürzer;
    boring: langweilig; interesting, more interesting: interessant, interessanter; secret: geheim; strange: seltsam;
    important, more important: wichtig, wichtiger; funny, funnier: lustig, lustiger"""
PLACE = (
    THING
    + """; quiet, quieter: ruhig, ruhiger; modern, more modern: modern, moderner; dark, darker: dunkel, dunkler;
        clean: sauber; dirty: schmutzig; empty: leer; famous: berühmt"""
)
MATTER = """important, more important: wichtig, wichtiger; simple, simpler: einfach, einfacher; serious: ernst;
    difficult, more difficult: schwierig, schwieriger; clear, clearer: klar, klarer; surprising: überraschend;
    new, newer: neu, neuer; strange: seltsam; good, better: gut, besser; wrong: falsch;
    bad, worse: schlecht, schlechter"""
EVENT = """long, longer: lang, länger; short, shorter: kurz, kürzer;
    successful, more successful: erfolgreich, erfolgreicher; boring: langweilig;
    interesting, more interesting: interessant, interessanter; loud, louder: laut, lauter;
    important, more important: wichtig, wichtiger; good, better: gut, besser; public: öffentlich"""
SPEED = "fast, faster: schnell, schneller; slow, slower: langsam, langsamer; modern, more modern: modern, moderner"
DESCRIPTIONS = {
    "person": PERSON,
    "relative": PERSON,
    "animal": """young, younger: jung, jünger; big, bigger: groß, größer; small, smaller: klein, kleiner;
        hungry: hungrig; """
    "black: schwarz; white: weiß; brown: braun; tired: müde; fast, faster: schnell, schneller",
    "text": TEXT,
    "object": f"""{THING}; {COLOUR}; heavy, heavier: schwer, schwerer; light, lighter: leicht, leichter;
        strange: seltsam""",
    "vessel": f"{THING}; {COLOUR}; empty: leer; full: voll; dirty: schmutzig; clean: sauber",
    "machine": f"{THING}; {SPEED}; broken: kaputt; loud, louder: laut, lauter; heavy, heavier: schwer, schwerer",
    "vehicle": f"{THING}; {COLOUR}; {SPEED}; dirty: schmutzig; broken: kaputt",
    "transport": f"{SPEED}; new, newer: neu, neuer; old, older: alt, älter; full: voll; empty: leer; late: verspätet",
    "clothing": f"""{THING}; {COLOUR}; warm, warmer: warm, wärmer; dirty: schmutzig; clean: sauber;
        long, longer: lang, länger""",
    "food": """fresh, fresher: frisch, frischer; warm, warmer: warm, wärmer; cold, colder: kalt, kälter;
        delicious: köstlich; """
    "big, bigger: groß, größer; small, smaller: klein, kleiner; expensive, more expensive: teuer, teurer",
    "drink": """cold, colder: kalt, kälter; fresh, fresher: frisch, frischer; warm, warmer: warm, wärmer;
        hot, hotter: heiß, heißer""",
    "building": f"{PLACE}; ugly, uglier: hässlich, hässlicher",
    "area": PLACE,
    "stop": THING,
    "surface": f"{THING}; {COLOUR}; heavy, heavier: schwer, schwerer",
    "opening": f"{THING}; {COLOUR}; dirty: schmutzig",
    "event": EVENT,
    "matter": MATTER,
    "weather": "heavy: stark; unexpected: unerwartet",
    "measure": "high, higher: hoch, höher; low, lower: niedrig, niedriger",
    "link": f"{SPEED}; new, newer: neu, neuer; old, older: alt, älter; important, more important: wichtig, wichtiger",
}
COLOURS = [*(colour.english for colour in pairs(COLOUR)), "brown"]
ABSOLUTE = [*COLOURS, "broken", "full", "empty", "late", "wrong", "public", "delicious", "good"]  # never after "very"
SECOND = ["young", "old", "new", *COLOURS]  # adjectives that may follow another adjective
ADJECTIVES: dict[str, list[Adjective]] = {
    kind: [adjective(entry) for entry in entries(text)] for kind, text in DESCRIPTIONS.items()
}

THE = Determiner("the", "", "definite", "weak")
A = Determiner("a", "ein", "ein", "mixed")
BARE = Determiner("", "", "none", "strong")
NO = Determiner("a", "kein", "ein", "mixed")  # for a negated clause: "does not have a car", "hat kein Auto"
NOT_ANY = Determiner("any", "kein", "ein", "mixed")
THIS = Determiner("this", "dies", "strong", "weak")
THESE = Determiner("these", "dies", "strong", "weak")
EVERY = Determiner("every", "jed", "strong", "weak")
WHICH = Determiner("which", "welch", "strong", "weak")
POSSESSIVES = [
    Determiner(*pair, "ein", "mixed") for pair in pairs("my: mein; his: sein; her: ihr; our: unser; their: ihr; your: Ihr")
]
QUANTITIES = [Determiner(*pair, "strong", "strong") for pair in pairs("many: viel; some: einig; several: mehrer")]
QUANTITIES += [Determiner("all", "all", "strong", "weak"), Determiner("both", "beid", "strong", "weak")]
QUANTITIES += [Determiner("a few", "ein paar", "none", "strong")]
COUNTS = pairs("""two: zwei; three: drei; four: vier; five: fünf; six: sechs; seven: sieben; eight: acht; nine: neun;
    ten: zehn; eleven: elf; twelve: zwölf; twenty: zwanzig""")
NUMBERS = [Determiner(*pair, "none", "strong") for pair in COUNTS]

MEN = ["Peter", "Paul", "Martin", "David", "Tom", "Daniel", "Otto", "Karl"]
WOMEN = ["Anna", "Maria", "Julia", "Laura", "Emma", "Sophie", "Lena", "Eva"]
SURNAMES = ["Schmidt", "Weber", "Fischer", "Wagner", "Becker", "Hoffmann"]
PRONOUNS = {
    "I": ("me", "ich", "mich", "mir"),
    "you": ("you", "Sie", "Sie", "Ihnen"),
    "he": ("him", "er", "ihn", "ihm"),
    "she": ("her", "sie", "sie", "ihr"),
    "we": ("us", "wir", "uns", "uns"),
    "they": ("them", "sie", "sie", "ihnen"),
}
IT = {"m": ("er", "ihn", "ihm"), "f": ("sie", "sie", "ihr"), "n": ("es", "es", "ihm")}
PROFESSIONS = {
    "m": pairs("""a teacher: Lehrer; a doctor: Arzt; an engineer: Ingenieur; a lawyer: Anwalt; a judge: Richter;
        a baker: Bäcker; a journalist: Journalist; a pilot: Pilot"""),
    "f": pairs("""a teacher: Lehrerin; a doctor: Ärztin; an engineer: Ingenieurin; a lawyer: Anwältin;
        a judge: Richterin; a baker: Bäckerin; a journalist: Journalistin; a pilot: Pilotin"""),
}
COUNTRIES = pairs("""Germany: nach Deutschland; Italy: nach Italien; Spain: nach Spanien; Switzerland: in die Schweiz;
    Austria: nach Österreich; Turkey: in die Türkei; Sweden: nach Schweden; Poland: nach Polen""")

DAYS = pairs("""Monday: Montag; Tuesday: Dienstag; Wednesday: Mittwoch; Thursday: Donnerstag; Friday: Freitag;
    Saturday: Samstag; Sunday: Sonntag""")
MONTHS = pairs("""January: Januar; February: Februar; March: März; April: April; May: Mai; June: Juni; July: Juli;
    August: August; September: September; October: Oktober; November: November; December: Dezember""")
SPANS = pairs("days: Tagen; weeks: Wochen; months: Monaten; years: Jahren")
TIMES = {
    "past": pairs("""yesterday: gestern; last week: letzte Woche; last year: letztes Jahr; last month: letzten Monat;
        the day before yesterday: vorgestern; yesterday evening: gestern Abend"""),
    "perfect": pairs("today: heute; this week: diese Woche; this year: dieses Jahr; recently: kürzlich"),
    "now": pairs("now: jetzt; today: heute; at the moment: im Moment; right now: gerade jetzt"),
    "habit": pairs("""every day: jeden Tag; every morning: jeden Morgen; every week: jede Woche; every year: jedes Jahr;
        in the evening: am Abend; in summer: im Sommer; in winter: im Winter"""),
    "future": pairs("""tomorrow: morgen; next week: nächste Woche; next year: nächstes Jahr; next month: nächsten Monat;
        the day after tomorrow: übermorgen; tomorrow morning: morgen früh; soon: bald"""),
}
OFTEN = pairs("often: oft; always: immer; never: nie; sometimes: manchmal; usually: normalerweise; rarely: selten")
ALREADY = pairs("already: schon; never: nie; finally: endlich; just: gerade")
MANNERS = pairs("""quickly: schnell; alone: allein; secretly: heimlich; with pleasure: mit Vergnügen;
    immediately: sofort; without help: ohne Hilfe; again: wieder""")
WISHES = pairs("""more time: mehr Zeit; more money: mehr Geld; a garden: einen Garten;
    a bigger house: ein größeres Haus; a better job: eine bessere Stelle; fewer problems: weniger Probleme;
    better neighbours: bessere Nachbarn""")
JUDGEMENTS = pairs("""important: wichtig; clear: klar; possible: möglich; strange: seltsam; wrong: falsch; good: gut;
    surprising: überraschend; dangerous: gefährlich""")

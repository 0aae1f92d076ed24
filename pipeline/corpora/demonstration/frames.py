"""The verbs of the demonstration corpus with their frames: the kinds of subject and object that each verb takes."""

from typing import NamedTuple

from pipeline.corpora.demonstration.inflection import (
    ACCUSATIVE,
    DATIVE,
    EnglishVerb,
    GermanVerb,
    Verb,
    english_verb,
    entries,
    german_verb,
    verb,
)


class Frame(NamedTuple):
    """A verb and the noun phrases that it takes.

    The English preposition is part of the verb ("wait for"); the German preposition is `preposition`.
    """

    verb: Verb
    objects: tuple[str, ...]  # kinds of nouns
    preposition: str
    case: int
    subjects: tuple[str, ...]
    stative: bool  # has no passive, progressive or imperative


class Modal(NamedTuple):
    """A verb before an infinitive: an auxiliary without inflection ("can") or an inflected verb ("wants to")."""

    auxiliary: str
    verb: EnglishVerb | None
    tail: str
    german: GermanVerb
    negated: GermanVerb
    tense: str  # the tense of `german` and of `verb`


def frames(table: dict[str, str], subjects: str = "person", stative: bool = False) -> list[Frame]:
    """Read a table that maps kinds of objects to verbs.

    A key may begin with a German preposition and a case: `auf acc:text`.
    """
    made = []
    for key, text in table.items():
        governed, _, kinds = key.rpartition(":")
        preposition, _, case = governed.partition(" ")
        for entry in entries(text):
            number = DATIVE if case == "dat" else ACCUSATIVE
            made.append(Frame(verb(entry), tuple(kinds.split()), preposition, number, tuple(subjects.split()), stative))
    return made


GOODS = "object vessel machine vehicle clothing"
TRANSITIVE = frames(
    {
        "text": """read/read: lesen, liest, las, gelesen;
            write/wrote/written: schreiben, schreibt, schrieb, geschrieben; translate: übersetzen;
            sign: unterschreiben, unterschreibt, unterschrieb, unterschrieben; copy: kopieren; publish: veröffentlichen;
            check: prüfen""",
        f"text {GOODS}": """buy/bought: kaufen; sell/sold: verkaufen; find/found: finden, findet, fand, gefunden;
            look for: suchen; pay/paid for: bezahlen; describe: beschreiben, beschreibt, beschrieb, beschrieben""",
        "text object": """lose/lost: verlieren, verliert, verlor, verloren; hide/hid/hidden: verstecken;
            forget/forgot/forgotten: vergessen, vergisst, vergaß, vergessen;
            steal/stole/stolen: stehlen, stiehlt, stahl, gestohlen;
            bring/brought back: zurück|bringen, bringt, brachte, zurückgebracht;
            throw/threw/thrown away: weg|werfen, wirft, warf, weggeworfen""",
        "machine vehicle": "repair: reparieren; use: benutzen; test: testen",
        "machine": "turn on: ein|schalten; turn off: aus|schalten",
        "clothing": """put/put on: an|ziehen, zieht, zog, angezogen;
            take/took/taken off: aus|ziehen, zieht, zog, ausgezogen; try on: an|probieren;
            wash: waschen, wäscht, wusch, gewaschen; wear/wore/worn: tragen, trägt, trug, getragen""",
        "food": "eat/ate/eaten: essen, isst, aß, gegessen; cut/cut: schneiden, schneidet, schnitt, geschnitten",
        "food drink": "order: bestellen; bring/brought: bringen, bringt, brachte, gebracht; taste: probieren",
        "drink": "drink/drank/drunk: trinken, trinkt, trank, getrunken",
        "building": "build/built: bauen; renovate: renovieren; visit: besuchen; clean: putzen",
        "building area": """enter: betreten, betritt, betrat, betreten;
            leave/left: verlassen, verlässt, verließ, verlassen""",
        "opening": """open: öffnen; close: schließen, schließt, schloss, geschlossen;
            paint: streichen, streicht, strich, gestrichen""",
        "person": """meet/met: treffen, trifft, traf, getroffen; call: an|rufen, ruft, rief, angerufen; ask: fragen;
            invite: ein|laden, lädt, lud, eingeladen; pick up: ab|holen; greet: begrüßen; visit: besuchen""",
        "person animal building": "see/saw/seen: sehen, sieht, sah, gesehen; photograph: fotografieren",
        "animal": "feed/fed: füttern; catch/caught: fangen, fängt, fing, gefangen",
        "event": """prepare: vor|bereiten; cancel/cancelled: ab|sagen; organise: organisieren; plan/planned: planen;
            miss: verpassen""",
        "transport": "miss: verpassen; use: benutzen",
        "link": "use: benutzen; plan/planned: planen; check: prüfen",
        "matter": """explain: erklären; discuss: besprechen, bespricht, besprach, besprochen; accept: akzeptieren;
            reject: ab|lehnen; change: ändern; understand/understood: verstehen, versteht, verstand, verstanden;
            suggest: vor|schlagen, schlägt, schlug, vorgeschlagen; mention: erwähnen""",
    }
)
STATIVE = frames(
    {
        "person": "know/knew/known: kennen, kennt, kannte, gekannt; love: lieben",
        "text clothing food drink": "like: mögen, mag, mochte, gemocht",
        GOODS: "have/had: haben, hat, hatte, gehabt; need: brauchen; own: besitzen, besitzt, besaß, besessen",
    },
    stative=True,
)
GIVING = frames(  # "gives the child a book" or "gives a book to the child"
    {
        "text object clothing": """give/gave/given: geben, gibt, gab, gegeben; send/sent: schicken;
            show/showed/shown: zeigen; lend/lent: leihen, leiht, lieh, geliehen;
            bring/brought: bringen, bringt, brachte, gebracht"""
    }
)
EXPLAINING = frames(  # "explains the problem to the child" only
    {
        "matter": "explain: erklären; describe: beschreiben, beschreibt, beschrieb, beschrieben",
        "text building": "recommend: empfehlen, empfiehlt, empfahl, empfohlen",
        "text object": "return: zurück|geben, gibt, gab, zurückgegeben",
    }
)
HELPING = frames(
    {
        "person relative": """help: helfen, hilft, half, geholfen; thank: danken; answer: antworten; trust: vertrauen;
            follow: folgen, folgt, folgte, ist gefolgt; listen to: zu|hören; congratulate: gratulieren"""
    }
)
PREPOSITIONAL = frames(
    {
        "auf acc:person transport text": "wait for: warten",
        "auf acc:event": "look forward to: sich freuen",
        "auf acc:person animal": "pay/paid attention to: achten",
        "an acc:person event": "think/thought of: denken, denkt, dachte, gedacht; remember: sich erinnern",
        "über acc:person matter text": """talk about: sprechen, spricht, sprach, gesprochen; laugh about: lachen;
            complain about: sich beschweren""",
        "von dat:event area vehicle": "dream of: träumen",
        "um acc:person animal event": "take/took/taken care of: sich kümmern",
        "an dat:event": "take/took/taken part in: teil|nehmen, nimmt, nahm, teilgenommen",
        "an dat:text matter": "work on: arbeiten",
        "für acc:matter": "apologise for: sich entschuldigen",
        "mit dat:person": "argue with: streiten, streitet, stritt, gestritten",
        "für acc:text matter event": "be/was/been interested in: sich interessieren",
    }
)
INTRANSITIVE = frames(
    {
        "": """sleep/slept: schlafen, schläft, schlief, geschlafen; work: arbeiten; laugh: lachen; dance: tanzen;
            sing/sang/sung: singen, singt, sang, gesungen; cry: weinen; play: spielen; rest: sich aus|ruhen;
            swim/swam/swum: schwimmen, schwimmt, schwamm, ist geschwommen;
            wake/woke/woken up: auf|wachen, wacht, wachte, ist aufgewacht;
            get/got up: auf|stehen, steht, stand, ist aufgestanden;
            fall/fell/fallen asleep: ein|schlafen, schläft, schlief, ist eingeschlafen;
            come/came/come back: zurück|kommen, kommt, kam, ist zurückgekommen"""
    }
)
RUNNING = frames(
    {
        "": """arrive: an|kommen, kommt, kam, ist angekommen; depart: ab|fahren, fährt, fuhr, ist abgefahren;
            stop/stopped: an|halten, hält, hielt, angehalten"""
    },
    subjects="transport",
)
HAPPENING = frames(
    {
        "": """begin/began/begun: beginnen, beginnt, begann, begonnen; end: enden;
            take/took/taken place: statt|finden, findet, fand, stattgefunden"""
    },
    subjects="event",
)
MOTION = frames(  # verbs of motion, by the kind of place that they lead to
    {
        "building area stop": """go/went/gone: gehen, geht, ging, ist gegangen;
            run/ran/run: laufen, läuft, lief, ist gelaufen""",
        "building stop town town": "drive/drove/driven: fahren, fährt, fuhr, ist gefahren",
        "town country": """travel/travelled: reisen, reist, reiste, ist gereist; move: ziehen, zieht, zog, ist gezogen;
            fly/flew/flown: fliegen, fliegt, flog, ist geflogen""",
    }
)
BOARDING = frames(
    {
        "in acc:transport": "get/got on: ein|steigen, steigt, stieg, ist eingestiegen",
        "aus dat:transport": "get/got off: aus|steigen, steigt, stieg, ist ausgestiegen",
    }
)
LIVING = frames({"building area town": "live: wohnen; stay: bleiben, bleibt, blieb, ist geblieben; work: arbeiten"})
LYING = frames({"": "lie/lay/lain: liegen, liegt, lag, gelegen"}, subjects="text object clothing")
LYING += frames({"": "stand/stood: stehen, steht, stand, gestanden"}, subjects="vessel machine")
PUTTING = frames(
    {
        "text object clothing": "put/put: legen; throw/threw/thrown: werfen, wirft, warf, geworfen",
        "vessel machine": "place: stellen",
    }
)
SEEMING = frames(
    {
        "": """look: aus|sehen, sieht, sah, ausgesehen; become/became/become: werden, wird, wurde, ist geworden;
            remain: bleiben, bleibt, blieb, ist geblieben"""
    },
    stative=True,
)
SAYING = frames(
    {
        "": """say/said: sagen; think/thought: denken, denkt, dachte, gedacht; believe: glauben; hope: hoffen;
            write/wrote/written: schreiben, schreibt, schrieb, geschrieben;
            know/knew/known: wissen, weiß, wusste, gewusst; hear/heard: hören; fear: befürchten; claim: behaupten;
            explain: erklären"""
    },
    stative=True,
)
TRYING = frames(
    {
        "": """try: versuchen; hope: hoffen; plan/planned: planen;
            decide: beschließen, beschließt, beschloss, beschlossen;
            promise: versprechen, verspricht, versprach, versprochen;
            begin/began/begun: beginnen, beginnt, begann, begonnen;
            forget/forgot/forgotten: vergessen, vergisst, vergaß, vergessen; refuse: sich weigern"""
    },
    stative=True,
)
QUOTING = frames(
    {
        "": """say/said: sagen; shout: rufen, ruft, rief, gerufen; whisper: flüstern; answer: antworten;
            explain: erklären; think/thought: denken, denkt, dachte, gedacht"""
    }
)
ASKING = verb("ask: fragen")
KNOWING = verb("know/knew/known: wissen, weiß, wusste, gewusst")
TRAVEL = verb("travel/travelled: reisen, reist, reiste, ist gereist")
VISIT = verb("visit: besuchen")
BECOME = verb("become/became/become: werden, wird, wurde, ist geworden")
WEATHER = [verb("rain: regnen, regnet, regnete, geregnet"), verb("snow: schneien")]
COST = verb("cost/cost: kosten")
WISHING = Verb(english_verb("have/had"), german_verb("haben, hat, hätte, gehabt"))  # if he had: wenn er hätte
RISE = verb("rise/rose/risen: steigen, steigt, stieg, ist gestiegen")
FALL = verb("fall/fell/fallen: sinken, sinkt, sank, ist gesunken")

BE = Verb(
    english_verb("be/was/been"),
    GermanVerb("", "sein", ("bin", "ist", "sind"), ("war", "war", "waren"), "gewesen", "sein", False),
)
HABEN = german_verb("haben, hat, hatte, gehabt")
SEIN = BE.german
WERDEN = german_verb("werden, wird, wurde, ist geworden")
WUERDE = german_verb("werden, wird, würde, ist geworden")
MOECHTE = german_verb("mögen, mag, möchte, gemocht")
KOENNEN = german_verb("können, kann, konnte, gekonnt")
MUESSEN = german_verb("müssen, muss, musste, gemusst")
DUERFEN = german_verb("dürfen, darf, durfte, gedurft")
SOLLEN = german_verb("sollen, soll, sollte, gesollt")
WOLLEN = german_verb("wollen, will, wollte, gewollt")
HAVE_TO = english_verb("have/had to")
WANT_TO = english_verb("want to")

WILL = Modal("will", None, "", WERDEN, WERDEN, "present")
WOULD = Modal("would", None, "", WUERDE, WUERDE, "past")
MODALS = [
    Modal("can", None, "", KOENNEN, KOENNEN, "present"),
    Modal("must", None, "", MUESSEN, DUERFEN, "present"),  # "must not" is a prohibition: darf nicht
    Modal("may", None, "", DUERFEN, DUERFEN, "present"),
    Modal("should", None, "", SOLLEN, SOLLEN, "past"),
    Modal("would", None, "like to", MOECHTE, MOECHTE, "past"),
    Modal("", HAVE_TO, "", MUESSEN, MUESSEN, "present"),
    Modal("", WANT_TO, "", WOLLEN, WOLLEN, "present"),
]
NEEDFUL = [MODALS[0], MODALS[1], MODALS[3], MODALS[5], WILL]  # modal verbs whose subject may be a thing
PAST_MODALS = [
    Modal("could", None, "", KOENNEN, KOENNEN, "past"),
    Modal("", HAVE_TO, "", MUESSEN, MUESSEN, "past"),
    Modal("", WANT_TO, "", WOLLEN, WOLLEN, "past"),
]

"""Words that say nothing about what a text is about, by language. Apart, because a hook asks for them and needs no
SQLite.

Closed classes only: articles, pronouns, prepositions, conjunctions, auxiliaries, question words. What is a stop word
here is content there (`die`, `war`, `no`), so who drops words asks `language.py` first whose they are.
"""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

from __future__ import annotations

from functools import cache

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here hers him his how i if in into is it its just me more most my no not of on
    or our out over own s she should so some such t than that the their them then there these they this those to too
    under until up very was we were what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a list would be a screen long
)
"""Those of English."""

_OTHERS = {
    "de": """aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis
        bist da dabei damit dann das dass dein deine deinem deinen deiner dem den denn der des dich die dies diese
        diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es euch euer eure für
        gegen gibt hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im
        in ins ist ja jede jedem jeden jeder jedes jene kann kannst kein keine keinem keinen keiner können könnte
        man mehr mein meine meinem meinen meiner mich mir mit muss müssen nach nicht nichts noch nur ob oder ohne
        schon sehr sein seine seinem seinen seiner seit sich sie sind so soll sollte sondern um und uns unser unsere
        unserem unseren vom von vor wann war waren warst warum was weil welche welchem welchen welcher welches wem
        wen wenn wer werde werden wessen wie wieder wieso will wir wird wirst wo wofür woher wohin womit worden
        worüber wurde wurden zu zum zur zwischen über""",
    "fr": """à ai ainsi alors as au aucun aussi autre aux avait avant avec avez avoir avons c car ce ceci cela celle
        celles celui ces cet cette ceux chez ci comme comment d dans de depuis des donc dont du elle elles en encore
        entre es est et étaient étais était été êtes être eu eux fait fut il ils j je jusque l la le les leur leurs
        lui là m ma mais me mes moi moins mon même n ne ni nos notre nous on ont ou où par parce pas pendant peu
        peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont
        sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y ça""",
    "es": """a al algo alguna algunas alguno algunos ante antes aquel aquella aquello aquí así aún cada como con
        contra cuál cual cuáles cuales cuando cuándo cuánta cuántas cuánto cuántos de del desde donde dónde dos
        durante e el él ella ellas ellos en entre era eran eres es esa esas ese eso esos esta está estaba estaban
        están estar estas este esto estos estoy estás fue fueron fui ha había han has hasta hay he la las le les lo
        los me mi mí mis mientras muy más nada ni no nos nosotros nuestra nuestro nuestros nuestras o os otra otro
        para pero por porque pues qué que quién quien quienes quiénes se sea según ser si sí sido sin sobre son soy
        su sus suya suyo sólo también tampoco tan te tener tengo ti tiene tienen tienes toda todas todo todos tu tú
        tus un una unas uno unos usted ustedes y ya yo""",
    "pt": """a ao aos aquela aquele aquilo as até com como cada da das de dela dele delas deles depois do dos e é
        ela elas ele eles em entre era eram essa essas esse esses esta está estamos estão estar estas estava estavam
        este estes estou eu foi foram fui há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na
        nas nem no nos nossa nossas nosso nossos não nós num numa o onde os ou para pela pelas pelo pelos por porque
        porquê pra qual quais quando quanta quantas quanto quantos que quem se seja sem ser seu seus sido são só
        sobre sou sua suas também te tem temos tenho ter teu teus teve tinha tinham tu tua tuas tém têm um uma umas
        uns vai você vocês à às""",
    "it": """a ad agli ai al alla alle allo anche ancora avere aveva avevo c che chi ci come con contro così cui d
        da dagli dai dal dalla dalle dallo degli dei del della delle dello di dopo dove dov e è ed era erano essere
        fa fino fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mentre mi mia mie miei mio ne negli
        nei nel nella nelle nello no noi non nostra nostre nostri nostro o ogni per perché perciò però più poi qual
        quale quali quando quanta quante quanti quanto quella quelle quelli quello questa queste questi questo qui
        se sei senza si sia siamo siete sono sta stato stata stati su sua sue sugli sui sul sulla sulle suo suoi tra
        tu tua tue tuo tuoi tutta tutte tutti tutto un una uno vi voi""",
    "nl": """aan al alles als bij ben bent daar dan dat de deze die dit doen door dus een en er ga geen haar had heb
        hebben hebt heeft hem het hier hij hoe hun ik in is ja jaar je jij jouw jullie kan kon kunnen maar me mee
        meer met mij mijn moet na naar niet niets nog nu of om omdat onder ons onze ook op over te tegen toch toen
        tot u uit uw van veel voor waar waarom wanneer want waren was wat we welk welke werd wie wij wil worden
        wordt zal ze zich zij zijn zo zonder zou""",
    "sv": """alla att av blev bli blir de dem den denna deras dess det detta dig din dina ditt du där efter ej eller
        en er ett från för ha hade han hans har henne hennes hon honom hur här i icke inte jag ju kan kunde man med
        mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på sedan sig sin sina sitt
        ska skulle som så till under upp ut utan vad var varför vem vi vid vilka vilken vilket är år åt över""",
    "da": """af alle alt at blev blive bliver da de dem den denne der deres det dette dig din dine disse dog du
        efter eller en end er et for fra ha havde han hans har hende hendes her hos hun hva hvad hvem hver hvilken
        hvis hvor hvordan hvorfor hvornår i ikke ind jeg jer jo kan kunne man med meget men mig min mine mit mod ned
        noget nogle nu når og også om op os over på selv sig sin sine sit skal skulle som sådan til ud under var vi
        vil ville vor være været""",
    "fi": """ei eivät emme en että ette hän hänen he heidän hei ja jos joka jotka kanssa kun kuin kuka kuinka me
        mikä mikään miksi milloin minkä minun minä missä mitä mutta myös ne niin nyt näin ole olen oli olin olivat
        olla on ovat sen se siellä sinun sinä siitä sitä tai te tämä tätä tässä vai vain voi""",
    "pl": """a aby ale bardzo bez bo był była było były być bym ci co czy dla do gdy gdzie go ich ile im i ja jak
        jaka jaki jakie je jego jej jest jestem jeszcze już każdy kiedy kto która które który ma mam mi mnie moja
        moje może mój na nad nam nas nasz nie nim o od on ona one oni ono oraz po pod przed przez przy się są ta tak
        także tam te tego tej ten to tu twój ty tych tylko tym w we wszystko z za ze że""",
    "cs": """a aby ale ani asi až bez by byl byla bylo byli být co či do ho i já jak jako jaký je jeho její jejich
        jen ještě již jsem jsi jsme jsou k kde kdo kdy když která které který ke ku má mám mé mezi mi mít mě můj
        může na nad nám nás náš ne nebo není než o od on ona oni ono po pod podle pro proč proto před při s se si
        své svůj ta tak také tam ten tento to tohle tu tvůj ty u už v ve však z za ze že""",
    "hu": """a az azt be csak de egy el én és ez ezt fel ha hanem hogy hogyan hol honnan hova ide igen is itt ki kit
        le lenne lesz ma már meg melyik mert mi mikor milyen mint mit most nagyon ne nekem nem ő ők össze ott pedig
        rá sem szerint ti van vagy vagyok vannak volt voltak""",
    "ro": """a acest această ai al ale am ar are as asta au bine ca că care ce cel cine când câți cu cum da dar de
        deci din două după ea ei el ele este eu fi fost în între îi îmi își la le lui lor mai mea mele meu mi mult
        ne nu o pe pentru prin sa să sale sau se și sunt sus ta tu un una unde unei unui vă voi""",
    "tr": """ama ancak ben beni benim bir biz bizim böyle bu buna bunu bunun çok çünkü da daha de değil diye en gibi
        hangi hem hep her için ile ise kadar ki kim kimin mi mı mu mü ne neden nedir nerede nereye niye o olan
        olarak oldu olduğu olur ona onlar onu onun sen seni senin siz sizin şey şu üzere var ve veya ya yok""",
    "vi": """anh bạn bao bị bởi các cái cho chị chúng có của cùng cũng đã đang đây đến đi đó được em gì hay hơn khi
        không là lại làm lên lúc mà mình mọi một nào này nên người nhiều như những nếu ở ra rất rồi sao sẽ tại theo
        thì tôi từ và vào vẫn vậy vì về với""",
    "id": """ada adalah agar akan aku anda apa apakah atau bagaimana bahwa banyak belum berapa bisa dalam dan dapat
        dari dengan di dia dua hanya harus ia ini itu jika juga kalau kami kamu kapan karena ke kenapa kepada kita
        lagi lebih maka mana masih mengapa mereka milik namun oleh pada para pernah saat saja sangat saya sebagai
        sebuah sedang seperti siapa sudah telah tentang tetapi tidak untuk yang""",
    "ru": """а без бы был была были было быть в вам вас ваш ваша ваше ваши весь во вот все всё всего всех вы где да
        даже для до его ее её ей ему если есть еще ещё же за и из или им их к ко когда кого кому которая которое
        которые который кто куда ли лишь мне много мой моя мое моё мои моего моей моих мы на над нам нас наш наша
        наше наши не него нее неё ней нет ни них но ну о об он она они оно от откуда очень по под почему при про с
        свой своя свои сколько со так такой там тебе тебя то тобой тогда того тоже только том тот ты у уже чего чей
        чем что чтобы чье чьё чья эта эти это этого этой этом этот эту я какая какие какой какую каким каких как
        меня мною зачем""",
    "uk": """а або але без би був була були було бути в вам вас ваш ви від він вона вони воно все всі де до для є же
        з за зі і із її їй їм їх його й коли котрий куди ми мене мені мій моя моє мої на над нам нас наш не ні про
        під по при та так також там те ти тільки то той тому у усе хто це цей ця ці чи чий чому що щоб я як яка яке
        які який""",
    "bg": """а аз ако ала без беше би бил била били бъде в вас ваш ви все всеки всички във го да до е за защо и из
        или им има как какво какъв кога кой която които къде ли ме ми много може мой му на над най не него нея ни
        ние но няма от по под при с са се си след сме съм със също та така там те ти това този тази тези той тя у че
        ще""",
    "zh": """的 了 着 过 吗 呢 吧 啊 是 在 和 与 或 及 也 都 就 还 又 很 把 被 让 给 对 从 到 向 于 以 而 但 我 你
        您 他 她 它 们 这 那 哪 谁 几 么 什么 怎么 怎样 如何 为什 为何 哪里 哪儿 哪个 哪些 多少 几个 是谁 谁是 是什
        是哪 在哪 我们 你们 他们 她们 它们 这个 那个 这些 那些 这里 那里 我的 你的 他的 她的 的是 是的 了吗 了什
        的吗 有没 没有 是不 不是 因为 所以 但是 如果 时候 么时""",
    "ja": """の は が を に へ と で も や か ね よ な です ます でし まし した して てい いる いま ある あり りま
        ません ませ せん たか すか ょう しょ った って こと もの よう その この あの どの それ これ あれ どれ どこ
        いつ だれ なに なん 何で 何を 何が は何 はど はい から まで には では とは のは のが のを ので のに でも
        ため たち さん ください くだ ださ さい たい ない なか なぜ どう うし うや やっ どん んな という いう うの
        する れる られ れた てる れは""",
    "ko": """은 는 이 가 을 를 의 에 에서 에게 와 과 도 로 으로 만 나 너 저 그 이것 그것 저것 우리 내 제 네 누구
        누가 뭐 무엇 무엇을 무슨 언제 어디 어디서 어디에 왜 어떻게 어떤 어느 몇 얼마나 있나요 있어 있다 인가요
        입니까 이다 하는 하다 했나요 그리고 하지만 또는 때""",
    "ar": """في من على إلى الى عن مع هذا هذه ذلك تلك هو هي هم أنا انا نحن أنت انت كان كانت يكون ما ماذا متى أين اين
        كيف لماذا كم هل لا لم لن قد أن ان إن كل بعض بين بعد قبل عند التي الذي الذين و أو او ثم لكن أي اي حتى إذا اذا
        له لها لي لك""",
    "fa": """از به با در که این آن را و یا برای است هست بود شد من تو او ما شما آنها چه کی کجا چرا چگونه چند هم نه تا
        اگر اما هر همه می ها""",
    "hi": """का की के को में से पर ने और या है हैं था थी थे हो हूँ हूं मैं मेरा मेरी मेरे तुम आप आपका वह यह वे ये हम
        उस इस उसका उसकी उनका क्या कौन कब कहाँ कहां क्यों कैसे कितना कितने कितनी किस किसका किसने कौनसा नहीं भी तो ही
        तक लिए साथ कर कि जो""",
}
"""Of Chinese and Japanese as they are searched: in letters and pairs of letters."""


def known_languages() -> tuple[str, ...]:
    """Return the languages whose stop words are known, as ISO 639-1 codes."""
    return ("en", *_OTHERS)


@cache
def stop_words(language: str | None) -> frozenset[str]:
    """Return the stop words of a language, in lower case; of an unknown one none."""
    return STOP_WORDS if language == "en" else frozenset(_OTHERS.get(language or "", "").split())

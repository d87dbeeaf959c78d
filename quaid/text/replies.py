"""Replies that ask nothing: `ok`, `yes, go ahead`, `merci beaucoup`, `はい`. Light, as the hook of each prompt asks."""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from unicodedata import combining, normalize

from quaid.text.stop_words import STOP_WORDS, known_languages, stop_words
from quaid.text.words import fold, list_words

_ENGLISH = frozenset(
    """ok okay k kk yes yep yeah y no nope n sure fine thanks thank thx ty please great good nice cool perfect awesome
    excellent right correct exactly agreed done continue proceed go ahead next again stop wait hi hello hey bye lgtm
    looks works working try retry run fix undo redo more less now then also too all both first second last one two three
    a b c d approve approved confirm confirmed ship merge commit push test tests it's that's let's don't didn't
    """.split()  # noqa: SIM905
)
_OTHERS = {
    "de": """ja nein doch gut okay ok danke bitte genau richtig stimmt klar super toll prima passt weiter mach
        machs mache nochmal nochmals stopp warte halt hallo tschüss perfekt fertig einverstanden erledigt nächste
        nächster nächstes los versuch versuche probier geht""",
    "fr": """oui non ok okay merci bien super parfait exact exactement continue continuez vas-y vas allez stop
        attends attendez bonjour salut d'accord accord encore suivant fait fais""",
    "es": """sí si no ok okay vale gracias bien bueno perfecto exacto claro correcto continúa continua sigue
        adelante espera hola adiós hecho listo hazlo siguiente favor""",
    "pt": """sim não ok okay obrigado obrigada bem bom ótimo perfeito certo exato claro continua continue segue
        espera olá tchau feito pronto próximo favor pode""",
    "it": """sì si no ok okay grazie bene buono perfetto esatto certo giusto continua prosegui va vai avanti
        aspetta ciao fatto pronto prossimo favore prego""",
    "nl": """ja nee ok oké dank bedankt goed prima perfect klopt verder ga door stop wacht hallo klaar volgende
        alsjeblieft graag""",
    "pl": """tak nie ok dobrze dzięki dziękuję proszę super świetnie dokładnie dalej kontynuuj stop czekaj cześć
        gotowe""",
    "tr": """evet hayır tamam ok teşekkürler teşekkür ederim lütfen güzel devam et dur bekle merhaba""",
    "ru": """да нет ага угу ок окей хорошо ладно спасибо пожалуйста отлично супер верно правильно точно понятно
        понял поняла ясно давай давайте продолжай продолжайте продолжи дальше далее ещё еще раз стоп подожди
        привет пока готово согласен согласна сделай можно""",
    "uk": """так ні добре гаразд дякую будь ласка чудово правильно далі продовжуй стоп зачекай привіт готово давай""",
    "zh": """好 好的 好吧 行 可以 是 是的 对 对的 不 不是 不用 嗯 嗯嗯 哦 谢谢 多谢 请 继续 请继续 开始 开始吧 停
        等等 等一下 你好 再见 没问题 明白 明白了 知道了 了解 完成 下一个 下一步 再来 再试一次 试试 同意 确认
        您好 大家好 早安 早上好 上午好 下午好 晚上好 晚安 拜拜 明天见 回头见 谢谢你 谢谢您 感谢 非常感谢 十分感谢
        太感谢了 辛苦了 不客气 謝謝 謝謝你 謝謝您 非常感謝 再見 明天見""",
    "ja": """はい いいえ いえ うん ううん ええ オーケー ok お願い お願いします おねがいします ありがとう
        ありがとうございます どうも 了解 了解です 了解しました わかりました 分かりました わかった 分かった 大丈夫
        いいです いいね いいよ よろしく 続けて 続けてください つづけて 続き 次 進めて 進めてください どうぞ
        すみません こんにちは 待って やって やってください もう一度 そうです そう なるほど 完璧 確認しました それ
        これ ください ございます です ます しました 何 誰 どこ いつ なぜ どう 何ですか おはよう おはようございます
        こんばんは おやすみ おやすみなさい どうもありがとう ありがとうございました お疲れ様 お疲れ様です
        お疲れ様でした お疲れさまです お疲れさまでした おつかれさま さようなら また明日 またね 助かりました
        助かります 失礼します どういたしまして""",
    "ko": """네 예 응 아니 아니요 아니오 좋아 좋아요 그래 그래요 알겠습니다 알겠어요 알았어 감사합니다 고마워
        고마워요 계속 계속해 계속해줘 계속해주세요 부탁해 부탁합니다 다음 잠깐 안녕 안녕하세요 완료 확인 맞아
        맞아요 해줘 주세요""",
    "ar": """نعم لا حسنا حسناً شكرا شكراً تمام جيد ممتاز من فضلك استمر تابع توقف مرحبا صحيح""",
    "hi": """हाँ हां नहीं ठीक है अच्छा धन्यवाद शुक्रिया कृपया जारी रखें रखो रुको नमस्ते सही आगे""",
    "th": """ใช่ ไม่ ไม่ใช่ โอเค ตกลง ขอบคุณ ครับ ค่ะ คะ ดี ดีมาก ต่อ ทำต่อ ต่อไป ได้ ได้เลย สวัสดี เดี๋ยว หยุด
        เสร็จแล้ว""",
}
_GREETINGS = """
    good morning|good afternoon|good evening|good night|good day|thank you very much|thank you so much
    thanks a lot|thanks so much|many thanks|much appreciated|cheers|no problem|you're welcome|have a nice day|take care
    see you tomorrow|see you later|see you soon|see you|talk to you later
    guten morgen|guten tag|guten abend|gute nacht|schönen tag|schönen abend|schönes wochenende|grüß gott|grüezi|servus
    vielen dank|herzlichen dank|besten dank|danke schön|dankeschön|danke sehr|tausend dank|auf wiedersehen|bis morgen
    bis später|bis bald|bis dann|wie geht's
    bonsoir|bonne nuit|bonne journée|bonne soirée|merci beaucoup|merci bien|mille mercis|un grand merci|grand merci
    je vous remercie|je te remercie|de rien|au revoir|à demain|à bientôt|à plus tard|ça va
    buenos días|buen día|buenas tardes|buenas noches|muchas gracias|muchísimas gracias|mil gracias|de nada
    hasta mañana|hasta luego|hasta pronto|qué tal
    bom dia|boa tarde|boa noite|muito obrigado|muito obrigada|valeu|de nada|até amanhã|até logo|até mais
    tudo bem
    buongiorno|buon giorno|buonasera|buona sera|buonanotte|buona notte|buona giornata|grazie mille|mille grazie
    molte grazie|tante grazie|ti ringrazio|la ringrazio|di niente|arrivederci|a domani|a presto|a dopo
    좋은 아침|좋은 아침이에요|좋은 아침입니다|안녕히 주무세요|안녕히 계세요|안녕히 가세요|잘 자|잘 자요|반갑습니다
    정말 감사합니다|대단히 감사합니다|정말 고마워|정말 고마워요|고맙습니다|정말 고맙습니다|감사해요|수고하셨습니다
    수고했어요|내일 봐요|내일 봐|또 봐요
    доброе утро|добрый день|добрый вечер|доброй ночи|спокойной ночи|здравствуй|здравствуйте|приветствую|хорошего дня
    большое спасибо|спасибо большое|огромное спасибо|благодарю|не за что|до свидания|до завтра|до встречи|как дела
    صباح الخير|صباح النور|مساء الخير|السلام عليكم|وعليكم السلام|أهلا|أهلا وسهلا|شكرا جزيلا|شكرا لك|ألف شكر|عفوا
    تصبح على خير|مع السلامة|إلى اللقاء|أراك غدا|كيف حالك
"""
"""Greetings and thanks in English, German, French, Spanish, Portuguese, Italian, Korean, Russian and Arabic. They are
whole phrases: `morning` with another word may be a statement.
"""
_MOST_WORDS = 4
"""Words of the longest."""
_JOINED = ("zh", "ja", "th")
"""Languages whose words have no spaces between them."""
_PARTICLES = frozenset("はがをにのかねよとでも的了吗吧呢啊")
"""Letters that are words only next to another: `かに` is a crab."""
_LETTER = r"[^\W\d_]|[\u0e31-\u0e4e]"
_LONGEST = 60
"""Characters up to which a reply in such a language is taken apart."""


def asks_nothing(text: str) -> bool:
    """Return whether all words of `text` are function words, replies and digits of one language, or greetings."""
    folded = fold(text.replace("’", "'")).lower()
    words = _without_greetings([word for word in list_words(folded, "'") if not word.isdigit()])
    if all(word in STOP_WORDS or word in _ENGLISH for word in words):
        return True
    if any(all(word in _replies(language) for word in words) for language in known_languages()):
        return True
    letters = "".join(re.findall(_LETTER, folded))
    if letters.isascii() or len(letters) > _LONGEST:
        return False
    for language in _JOINED:
        left = letters
        for reply in sorted(_OTHERS[language].split(), key=len, reverse=True):
            left = left.replace(reply, " ")
        if left != letters and set(left) <= _PARTICLES | {" "}:
            return True
    return False


def _without_greetings(words: Sequence[str]) -> list[str]:
    left: list[str] = []
    at = 0
    while at < len(words):
        lengths = (n for n in range(_MOST_WORDS, 0, -1) if _unmarked(" ".join(words[at : at + n])) in _greetings())
        if length := next(lengths, 0):
            at += length
        else:
            left.append(words[at])
            at += 1
    return left


@cache
def _greetings() -> frozenset[str]:
    phrases = _GREETINGS.strip().replace("\n", "|").split("|")
    return frozenset(_unmarked(phrase.strip()) for phrase in phrases)


def _unmarked(text: str) -> str:
    """Return `text` without accents, which many leave out (`buenos dias`), as they do the hamza of an alif."""
    return text if text.isascii() else "".join(part for part in normalize("NFD", text) if not combining(part))


@cache
def _replies(language: str) -> frozenset[str]:
    return stop_words(language).union(_OTHERS.get(language, "").split())

"""The middle of a model's vectors, which some models have far from zero.

The cosines of multilingual-e5-small lie between .7 and .9 whatever is compared, as all its vectors share one large
part. Without that part they spread around zero as those of other models do, so that one scale serves thresholds,
diversity and duplicates. The part is the mean over sentences in many languages that have nothing in common; questions
have another than texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

CENTRE_FILE = "centre.npy"
SENTENCES = (
    "Where did Anna put the key?",
    "My sister works as a nurse in Boston.",
    "We moved to another city in 2019.",
    "The server runs on port 8080.",
    "She plays the violin every Tuesday.",
    "def foo(x): return x ** 2",
    "Anna wohnt in Köln und fährt jeden Morgen mit dem Rad.",
    "J'ai réservé l'hôtel à Lyon pour le 14 juillet.",
    "La contraseña del wifi está en el cajón de la cocina.",
    "O cachorro da Beatriz chama-se Pipoca e tem meio ano.",
    "Il treno per Napoli parte alle nove di sera.",
    "Mijn broer repareert oude fietsen in de schuur.",
    "Mormor bakar bullar när det regnar.",
    "Mam alergię na orzechy i nie jem glutenu.",
    "Dědeček pěstuje rajčata na balkoně.",
    "A nagymamám minden vasárnap levest főz.",
    "Îmi place să citesc seara târziu.",
    "Мой брат работает инженером в Санкт-Петербурге.",
    "Моя донька вчиться грати на бандурі.",
    "Μου αρέσει να κολυμπώ στη θάλασσα το πρωί.",  # noqa: RUF001 (Greek)
    "Annem her sabah çay demler.",
    "אני גר בתל אביב ועובד בבנק.",
    "أعمل طبيبة في مستشفى القاهرة منذ عام ٢٠١٥",
    "پدرم هر روز روزنامه می‌خواند.",
    "मेरी बहन दिल्ली में रहती है और संगीत सिखाती है।",
    "আমার ভাই ক্রিকেট খেলতে ভালোবাসে।",
    "என் தாத்தா ஒரு விவசாயி.",
    "คุณยายของฉันชอบทำแกงเขียวหวานทุกวันอาทิตย์",
    "ខ្ញុំរស់នៅភ្នំពេញ",
    "Tôi thích uống cà phê sữa đá vào buổi chiều.",
    "Kakak saya membuka toko buku di Bandung.",
    "今天下午三点和王经理开会,讨论预算。",
    "我的猫叫小白,今年三岁了。",
    "私の誕生日は五月です。東京に住んでいます。",
    "저는 매주 토요일에 등산을 갑니다.",
    "Mwalimu wetu anapenda kusoma vitabu.",
)


def find_centre(embed: Callable[[Sequence[str]], npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Return the mean, float32 [dimension], of the vectors that `embed` gives."""
    mean: npt.NDArray[np.float32] = embed(SENTENCES).mean(axis=0)
    return mean

"""A reply asks nothing, in any language; a question does, however short."""

from __future__ import annotations

from matrices import for_each

from quaid.text.replies import asks_nothing

REPLIES = [
    "", "ok", "yes, go ahead", "Looks good, thanks!", "ja bitte", "Ja, mach weiter.", "Oui, merci", "D’accord, vas-y !", "Sí, por favor",
    "gracias", "Sim, continua", "va bene, grazie", "Да, давай", "продолжай", "Хорошо, спасибо!", "а что это?", "什么?", "好的", "好的，谢谢",
    "是的，继续", "はい", "はい、お願いします", "ありがとうございます！", "続けてください", "これは何ですか", "네", "네, 계속해 주세요", "ครับ", "ขอบคุณครับ", "نعم، شكرا",
    "ठीक है", "1, 2", "тоже 3", "good morning!", "buenos dias", "Merci beaucoup, à demain", "شكرا جزيلا", "早上好", "また明日",
    "thanks my friend", "you're the best, thank you so much!", "good morning, how are you today?", "wow, that was quick", "danke mein Freund",
    "hope you had a good weekend!", "gracias amigo", "Great job, everyone", "lol, hilarious",
    "hello again, ready to begin?", "all right, sounds like a plan", "alright, shall we start?", "understood, no worries", "ok I'm back",
]  # fmt: skip
QUESTIONS = [
    "peanuts?", "is Maya in?", "Wo ist Maya?", "Katze", "gato", "la Paz", "Где Майя?", "арахис", "花生", "猫", "好吃的花生", "银行", "はな", "かに",
    "ミソはどこ", "猫は何ですか", "땅콩", "마야는 어디?", "ถั่ว", "أين مايا", "माया कहाँ है", "good morning Vietnam?", "his morning", "guten Appetit",
    "who is my friend?", "thanks, when is the weekend?", "great, what is the idea?", "thanks, is my friend vegan?", "thank the team in Oslo",
    "ready for the exam?", "shall we start the heating?", "alright, when do we start?", "did the course start?",
]  # fmt: skip


@for_each("text", REPLIES)
def test_a_reply_asks_nothing(text):
    assert asks_nothing(text)


@for_each("text", QUESTIONS)
def test_a_question_is_one(text):
    assert not asks_nothing(text)

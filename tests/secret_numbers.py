"""Numbers that are secrets, and keys that were cut, with what only looks like one; each list twice.

`TUNED` and `HARMLESS` were in sight while the forms were written. `HELD_OUT` and `HARMLESS_HELD_OUT` were written before
and not run until the end. (kind, what is around the value, the value); in the value each line has to go. Every number is
made here or is one that its issuer publishes for tests.
"""

from __future__ import annotations

import random
import string

from secret_samples import BASE64, HEX, some

NBSP, THIN = "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"
_draw = random.Random(31)


def card(start: str, length: int = 16) -> str:
    """Return a number that begins with `start` and whose last digit is right by Luhn's check."""
    digits = start + "".join(_draw.choice(string.digits) for _ in range(length - len(start) - 1))
    doubled = [sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(digits))]
    return digits + str(-sum(doubled) % 10)


def iban(country: str, account: str) -> str:
    """Return an IBAN with the right check digits."""
    rest = int("".join(str(int(sign, 36)) for sign in f"{account}{country}00"))
    return f"{country}{98 - rest % 97:02}{account}"


def grouped(number: str, sign: str = " ", *sizes: int) -> str:
    parts, left = [], number
    for size in sizes or [4] * ((len(number) + 3) // 4):
        parts.append(left[:size])
        left = left[size:]
    return sign.join(parts)


def insee(number: str) -> str:
    return f"{number}{97 - int(number) % 97:02}"


def body(lines: int, width: int = 64, last: int = 28) -> str:
    """Return the lines of a key in base64, without the first and the last line of its file."""
    return "\n".join([*(some(width, BASE64) for _ in range(lines)), some(last, BASE64)])


TUNED = [
    ("card", "card number {}", "4111 1111 1111 1111"),
    ("card", "{}", "5555555555554444"),
    ("card", "my card: {}.", grouped(card("4539"), NBSP)),
    ("card", "Karte {}", grouped(card("5425"), THIN)),
    ("card", "pay with {} exp 12/27", grouped(card("4000"), "-")),
    ("card", "amex: {}", grouped(card("3782", 15), " ", 4, 6, 5)),
    ("card", '"card": "{}"', card("2223")),
    ("card", "diners {}", grouped(card("3056", 14), " ", 4, 6, 4)),
    ("card", "jcb={}&x=1", card("3530")),
    ("card", "union pay {}", card("6212", 19)),
    ("card", "discover {}, cvv 913", grouped(card("6011"))),
    ("iban", "my IBAN is {}", "DE89 3704 0044 0532 0130 00"),
    ("iban", "{}", "FR1420041010050500013M02606"),
    ("iban", "iban: {}", "de89 3704 0044 0532 0130 00"),
    ("iban", "send it to {} please", iban("NO", "86011117947")),
    ("iban", "to {}, thanks", grouped(iban("MT", "MALT011000012345MTLCAST001S"), NBSP)),
    ("iban", "{} is Tom's", grouped(iban("AT", "1904300234573201"), "-")),
    ("italian id", "{}", "RSSMRA85T10A562S"),
    ("brazilian id", "o CPF dela é {}", "529.982.247-25"),
    ("french id", "{}", grouped(insee("1850578006084"), " ", 1, 2, 2, 2, 3, 3, 2)),
    ("american id", "my SSN is {}", "536-22-8145"),
    ("american id", "Social Security number: {}", "536 22 8145"),
    ("british id", "my National Insurance number is {}", "AB 12 34 56 C"),
    ("german id", "Meine Steuer-ID lautet {}", "12 345 678 903"),
    ("spanish id", "mi DNI es {}", "12345678Z"),
    ("dutch id", "BSN: {}", "111222333"),
    ("polish id", "PESEL {}", "44051401359"),
    ("swedish id", "mitt personnummer är {}", "811218-9876"),
    ("indian id", "Aadhaar number {}", "2345 6789 1238"),
    ("french id", "numéro de sécurité sociale : {}", insee("2690549588157")),
    ("licence key", "{}", "VK7JG-NPHTM-C97JM-9MPGT-3V66T"),
    ("licence key", "licence key: {}", "ABCD-1234-EFGH-5678"),
    ("licence key", "the product key is {}", "K4TX-99QP-2MNB-71ZZ"),
    ("licence key", "Serial key = {}", "7H2K9-LMN3P-Q8RST"),
    ("pem body", "{}", body(4)),
    ("pem body", "this was in the file:\n\n{}\n\nwhat is it?", body(3)),
    ("pem body", "{}", "MIIEpAIBAAKCAQEA" + some(48, BASE64)),
    ("pem body", "> {}", body(3).replace("\n", "\n> ")),
    ("pem body", "{}\n-----END RSA PRIVATE KEY-----\n", body(2)),
    ("pem body", "{}", "b3BlbnNzaC1rZXktdjEAAAAA" + some(46, BASE64) + "\n" + body(4, 70)),
    ("over two lines", "my password is {}", "hunter2-\nBlue-77"),
    ("over two lines", "the api key is {}", some(16, HEX) + "\n" + some(16, HEX)),
    ("over two lines", "token: {}", some(15) + "1a\n" + some(10) + "2b"),
    ("over two lines", "client_secret = '{}'", some(20) + "\\\n" + some(20)),
    ("next turn of a pin", "assistant: What's the PIN?\nuser: {}", "4821"),
    ("next turn of a pin", "[10:02] Maya: what's the PIN?\n[10:03] Tom: {}", "4821"),
    ("next turn of a pin", "**Maya** (10:02): What's the PIN?\n**Tom** (10:03): {}", "4821"),
    ("next turn of a pin", "- What's the PIN?\n- {}", "48 21"),
]  # fmt: skip

HELD_OUT = [
    ("card", "the corporate Visa, {}, is blocked", grouped(card("4916"))),
    ("card", "MasterCard {} 09/28", grouped(card("5105"), "-")),
    ("card", "{}", card("2720")),
    ("card", "my Amex number's {}", card("3714", 15)),
    ("card", "Amex\t{}", grouped(card("3400", 15), NBSP, 4, 6, 5)),
    ("card", "carte bleue n° {}", grouped(card("4970"), NBSP)),
    ("card", "number={};cvc=123", card("6445")),
    ("card", "Kreditkarte:{}", grouped(card("5318"), THIN)),
    ("card", "I typed {} twice", grouped(card("3589"))),
    ("card", "银联卡 {}", grouped(card("6228", 19), " ", 4, 4, 4, 4, 3)),
    ("card", "first {}", card("4485")),
    ("card", "maestro {}", grouped(card("5018"))),
    ("cvv", "the CVC is {}", "482"),
    ("iban", "Bitte auf {} überweisen", grouped(iban("DE", "500105175407324931"))),
    ("iban", "{} (ING)", grouped(iban("NL", "INGB0001234567"))),
    ("iban", "account {};", iban("GB", "BUKB20201555555555").lower()),
    ("iban", "compte {} chez La Banque", grouped(iban("FR", "20041010050500013M02606"))),
    ("iban", "Konto: {}", grouped(iban("CH", "00762011623852957"), NBSP)),
    ("iban", "IBAN {} BIC COBADEFFXXX", grouped(iban("PL", "109010140000071219812874"))),
    ("iban", "{}", iban("ES", "21000418450200051332")),
    ("iban", "iban={}", iban("BE", "539007547034")),
    ("italian id", "codice fiscale {}", "BNCGVN72M41F205X"),
    ("italian id", "intestato a Bianchi, {}, Milano", "VRDLGU60A01H501K"),
    ("brazilian id", "CPF: {}", "111.444.777-35"),
    ("brazilian id", "meu cpf é {}", "11144477735"),
    ("french id", "mon numéro INSEE est {}", grouped(insee("2941175115001"), " ", 1, 2, 2, 2, 3, 3, 2)),
    ("french id", "Sécu: {}", insee("1790333063124")),
    ("american id", "her social is {}, keep it", "219-09-9999"),
    ("american id", "SSN={}", "219099999"),
    ("british id", "NINO: {}", "JG103759A"),
    ("british id", "NI number is {}", "JG 10 37 59 A"),
    ("german id", "Steueridentifikationsnummer: {}", "86095742719"),
    ("german id", "Die Steuer-Identifikationsnummer von Tom ist {}", "47 036 892 816"),
    ("spanish id", "NIE {}", "X1234567L"),
    ("spanish id", "el DNI de Marta: {}", "87654321-X"),
    ("dutch id", "burgerservicenummer {}", "123456782"),
    ("polish id", "mój PESEL to {}", "02070803628"),
    ("swedish id", "personnummer: {}", "19811218-9876"),
    ("indian id", "my aadhar is {}", "4991 1866 5246"),
    ("licence key", "Windows: {}", "W269N-WFGWX-YVC9B-4J6C9-T83GX"),
    ("licence key", "license key - {}", "9QKT-XX71-PLM2-04BA-77CD"),
    ("licence key", "Lizenzschlüssel: {}", "TT41-88KL-PQ02-MN7Z"),
    ("licence key", "activation key {}", "B7D2X-11QPL-M8N4K"),
    ("pem body", "```\n{}\n```", body(5)),
    ("pem body", "{}", body(2, 64, 64)),
    ("pem body", "…and then the second half:\n{}", body(6, 70, 12)),
    ("pem body", "    {}", body(3).replace("\n", "\n    ")),
    ("pem body", "key: |\n  {}", body(4).replace("\n", "\n  ")),
    ("pem body", "{}", "MHcCAQEEI" + some(55, BASE64) + "\n" + body(1)),
    ("pem body", "{}\r\nbye", body(3).replace("\n", "\r\n")),
    ("over two lines", "Our wifi password: {}", "Sunny-\nside-42"),
    ("over two lines", "secret key = {}", some(19) + "7b\n" + some(20) + "9"),
    ("over two lines", "access token is {} ok?", some(22) + "3\n" + some(18) + "8x"),
    ("over two lines", '"api_key": "{}"', some(20, HEX) + "\\\n    " + some(20, HEX)),
    ("next turn of a pin", "Q: and the PIN of the SIM?\nA: {}", "77190"),
    ("next turn of a pin", "user (09:14): whats your pin\nbot (09:15): {}", "5512"),
    ("next turn of a pin", "2024-05-01 10:00 Anna: What is the PIN?\n2024-05-01 10:01 Ben: {}", "9017"),
    ("next turn of a pin", "* What PIN did you set?\n* it's {}", "6 6 0 2"),
]  # fmt: skip

HARMLESS = [
    "order 4111 1111 1111 1112", "ISBN 978-0-306-40615-7", "EAN 4006381333931", "ISBN 9783161484100", "+49 30 90182000 1234", "DE89 is not enough",
    "1700000000000 ms", "ts=1700000000000000", "1718035200123456789", "tracking 1Z999AA10123456784", "USPS 9400 1000 0000 0000 0000 00", "DHL 00340434161094042557",
    "order 111-4567890-1234567", "0.4111111111111111", "4111111111111111.5 was the sum", "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904", "550e8400-e29b-41d4-a716-446655440000",
    "call 536-22-8145 x2", "part no. 123-45-6789", "order 12345678Z", "ticket AB123456C", "BSN is a Dutch number", "the CPF has 11 digits", "my SSN is private", "my SSN is private, ISBN 9783161484100", "social is great 2024-2025 12345", "PESEL and phone: +48 600 700 800 12", "social security is due in 2026",
    "tel 0151 23456789", "VIN 1HGBH41JXMN109186", "IMEI 490154203237518", "serial C02XL0GTJGH5", "MAC 00:1b:44:11:3a:b7", "IP 192.168.100.200", "lat 52.520008, lon 13.404954",
    "a licence key is needed", "UUID f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "step-by-step-guide-to-x", "AAAAA-BBBBB", "coupon SUMMER-2026-SALE",
    "-----BEGIN CERTIFICATE-----\n" + body(4) + "\n-----END CERTIFICATE-----", "ssh-rsa AAAAB3NzaC1yc2E" + some(300, BASE64) + " maya@laptop",
    "-----BEGIN PUBLIC KEY-----\n" + body(2) + "\n-----END PUBLIC KEY-----", "a" * 64 + "\n" + "b" * 64, "\n".join(some(64, HEX) for _ in range(4)),
    "What's the PIN?\nI have no idea, 4 people asked", "Which pin of the chip is it?\nNo. 12", "the PIN is 4 digits\n2026 was fine", "2 + 2\n4821",
    "my password is wrong\nBlue is a colour", "the token is\nexpired", "the api key is in\nthe vault-2 folder",
]  # fmt: skip

HARMLESS_HELD_OUT = [
    "Bestellung 4539 5787 6362 1487", "GTIN 05901234123457", "ISBN-13: 978-1-4028-9462-6", "barcode 4012345678901", "epoch 1655000000123", "1655000000123456", "snowflake 1089374561234567890",
    "FedEx 449044304137821", "UPS 1Z12345E0205271688", "RR123456785DE", "parcel JD0002 2345 6789 0123 45", "+1 415 555 2671 ext 4821", "call 0800 400 4111 1111", "fax +44 20 7946 0958",
    "invoice 2026-0000-4111-1111", "case 12-3456789", "flight LH 400, seat 41A", "PO 4500123456", "Amazon 302-1234567-7654321", "matrix 1234 2345 3456 4567 5678", "pi 3.141592653589793238462643",
    "1111 2222 3333 4444 5555 6666", "ab12 cdef 3456", "GB12 is a postcode area?", "at20 degrees", "IT60 train leaves at 9", "NO93 8601", "revision 5425233430109904",
    "SSN stands for social security number", "the DNI was renewed in 2024", "Steuer-ID beantragt am 12.03.2026", "PESEL to numer z 11 cyfr", "my NINO card is lost", "Aadhaar enrolment takes 90 days",
    "personnummer is asked at 08:00", "CPF ou CNPJ?", "insee.fr/2026/statistics/1234567", "serial number on the back", "activation takes 3 days", "key: value-1234-list-5678", "ID-2026-11-20-0001",
    "sha512-" + some(86, BASE64) + "==", "data:image/png;base64," + some(200, BASE64), "-----BEGIN CERTIFICATE REQUEST-----\n" + body(3) + "\n-----END CERTIFICATE REQUEST-----",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + body(4) + "\n=ab12\n-----END PGP PUBLIC KEY BLOCK-----", "-----BEGIN PGP SIGNATURE-----\n\n" + body(4) + "\n-----END PGP SIGNATURE-----",
    "\n".join(f"{some(64, HEX)}  file{n}.txt" for n in range(3)), "=" * 64 + "\n" + "=" * 64, "Maya: did you pin it?\nTom: 2024 times", "Which bowling pin fell?\nThe 10", "what is a PIN?\n\n1. a number\n2. secret",
    "the password is too short\nTry 12-digit ones", "token:\n  type: string", "secret = load()\nvalue2 = 3", "api key: see\ndocs-v2/page",
]  # fmt: skip

"""Secrets that never were any, as people write and paste them, and what only looks like one.

The values follow the real formats. They are put together here and stand nowhere, so that no scanner stumbles over them.
"""

from __future__ import annotations

import base64
import json
import random
import string

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + string.digits
AWS = string.ascii_uppercase + "234567"
_dice = random.Random(20)


def some(length, alphabet=ALNUM):
    """`length` characters, the last one a letter or digit."""
    ends = "".join(character for character in alphabet if character.isalnum())
    return "".join(_dice.choice(alphabet) for _ in range(length - 1)) + _dice.choice(ends)


def _jwt():
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "maya", "iat": 1516239022})
    head = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join([*head, some(43, URLSAFE)])


def block(kind, newline="\n"):
    lines = [
        f"-----BEGIN {kind}-----",
        *(some(64, BASE64) for _ in range(8)),
        some(22, BASE64) + "==",
        f"-----END {kind}-----",
    ]
    return newline.join(lines)


KEYS = {
    "aws-access-key": "AKIA" + some(16, AWS),
    "aws-access-key temporary": "ASIA" + some(16, AWS),
    "github-pat": "ghp_" + some(36),
    "github-oauth": "gho_" + some(36),
    "github-app-token": "ghs_" + some(36),
    "github-fine-grained-pat": f"github_pat_{some(22)}_{some(59)}",
    "gitlab-pat": "glpat-" + some(20, URLSAFE),
    "slack-bot-token": f"xoxb-{some(12, string.digits)}-{some(13, string.digits)}-{some(24)}",
    "slack-user-token": "xoxp-" + "-".join(some(12, string.digits) for _ in range(3)) + "-" + some(32, HEX),
    "slack-app": f"xapp-1-A{some(10, UPPER)}-{some(13, string.digits)}-{some(64, HEX)}",
    "slack-webhook": f"https://hooks.slack.com/services/T{some(10, UPPER)}/B{some(10, UPPER)}/{some(24)}",
    "discord-webhook": f"https://discord.com/api/webhooks/{some(18, '123456789')}/{some(68, URLSAFE)}",
    "discord-token": f"MTA{some(23)}.{some(6)}.{some(38)}",
    "telegram-token": f"{some(10, '123456789')}:AA{some(33, URLSAFE)}",
    "stripe live": "sk_live_" + some(24),
    "stripe long": "sk_live_51" + some(97),
    "stripe restricted": "rk_live_" + some(24),
    "stripe test": "sk_test_" + some(24),
    "stripe webhook": "whsec_" + some(32),
    "openai old": f"sk-{some(20)}T3BlbkFJ{some(20)}",
    "openai project": f"sk-proj-{some(74, URLSAFE)}T3BlbkFJ{some(74, URLSAFE)}",
    "anthropic": f"sk-ant-api03-{some(93, URLSAFE)}AA",
    "anthropic oauth": f"sk-ant-oat01-{some(93, URLSAFE)}AA",
    "openrouter": "sk-or-v1-" + some(64, HEX),
    "google api": "AIza" + some(35, URLSAFE),
    "google client": "GOCSPX-" + some(28, URLSAFE),
    "google access": "ya29." + some(120, URLSAFE),
    "hugging face": "hf_" + some(34, string.ascii_letters),
    "npm": "npm_" + some(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + some(150, URLSAFE),
    "sendgrid": f"SG.{some(22, URLSAFE)}.{some(43, URLSAFE)}",
    "twilio": "SK" + some(32, HEX),
    "mailgun": "key-" + some(32, HEX),
    "mailchimp": some(32, HEX) + "-us12",
    "digitalocean": "dop_v1_" + some(64, HEX),
    "jwt": _jwt(),
    "azure ad": f"{some(3)}8Q~{some(34)}",
    "databricks": "dapi" + some(32, HEX),
    "shopify": "shpat_" + some(32, HEX),
    "square": "sq0atp-" + some(22, URLSAFE),
    "linear": "lin_api_" + some(40),
    "notion": "ntn_" + some(46),
    "vault": "hvs." + some(95, URLSAFE),
    "doppler": "dp.pt." + some(43),
    "figma": "figd_" + some(40, URLSAFE),
    "grafana": f"glsa_{some(32)}_{some(8, HEX)}",
    "postman": f"PMAK-{some(24, HEX)}-{some(34, HEX)}",
    "planetscale": "pscale_tkn_" + some(43, URLSAFE),
    "supabase": "sbp_" + some(40, HEX),
    "docker": "dckr_pat_" + some(27, URLSAFE),
    "replicate": "r8_" + some(37),
    "groq": "gsk_" + some(52),
    "perplexity": "pplx-" + some(48),
    "xai": "xai-" + some(80),
    "age": "AGE-SECRET-KEY-1" + some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "netlify": "nfp_" + some(36),
    "mapbox": f"sk.eyJ1Ijoi{some(60)}.{some(22)}",
    "new relic": "NRAK-" + some(27, UPPER),
    "langsmith": f"lsv2_pt_{some(32, HEX)}_{some(10, HEX)}",
    "tavily": "tvly-" + some(32),
    "terraform": f"{some(14)}.atlasv1.{some(67, URLSAFE)}",
    "rubygems": "rubygems_" + some(48, HEX),
    "hubspot": "pat-na1-" + "-".join(some(length, HEX) for length in (8, 4, 4, 4, 12)),
    "rsa": block("RSA PRIVATE KEY"),
    "openssh": block("OPENSSH PRIVATE KEY"),
    "pkcs8": block("PRIVATE KEY"),
    "pgp": block("PGP PRIVATE KEY BLOCK"),
}
KEY_PLACES = (
    "{}",
    "Here is the key: {} - please don't lose it.",
    "I pasted `{}` into the settings page.",
    "```\ncurl -H 'X-Key: {}' https://api.example.com/v1/me\n```",
    "2026-05-08 13:56:02 INFO started with {} on port 8080",
)  # fmt: skip

_hex32, _secret40, _mixed = some(32, HEX), some(40, BASE64), some(24)
IN_PLACES = [
    # what is around the value, and the value: environments, yaml, json, addresses, logs, command lines, code
    ("export AWS_SECRET_ACCESS_KEY={}", _secret40),
    ("aws_secret_access_key = {}", some(40, BASE64)),
    ("DATADOG_API_KEY={}\nPORT=8080", _hex32),
    ('{{"api_key": "{}", "model": "small"}}', _mixed),
    ("api_key: {}\nregion: eu-west-1", some(32)),
    ("client_secret='{}'", some(32)),
    ("The access token is {} and it expires in May.", some(40)),
    ("my api key is {}, can you test it?", some(32, HEX)),
    ("GET https://api.example.com/v1/users?api_key={}&page=2", some(32)),
    ("https://example.com/cb?access_token={}&state=xyz", some(48)),
    ("const token = '{}';", some(36)),
    ("AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net", some(86, BASE64) + "=="),
    ("Authorization: Bearer {}", some(43, URLSAFE)),
    ("-H 'Authorization: token {}'", some(40, HEX)),
    ('{{"headers": {{"authorization": "Basic {}"}}}}', base64.b64encode(b"maya:hunter2!").decode()),
    ("it sends Bearer {} with each call", some(32)),
    ("X-Api-Key: {}", some(32)),
    ("postgres://maya:{}@db.example.com:5432/app", "tr0ub4dor"),
    ("mongodb+srv://app:{}@cluster0.abcde.mongodb.net/test", "S3cr%40t!x"),
    ("redis://:{}@localhost:6379/0", "correcthorse"),
    ("amqp://guest:{}@rabbit:5672", "swordfish"),
    ("https://maya:{}@git.example.com/maya/app.git", some(20)),
    ("DATABASE_URL=mysql://root:{}@127.0.0.1/shop", "p@ssw0rd"),
    ("DB_PASSWORD={}", "swordfish"),
    ("DB_PASSWORD='{}'", "correct horse battery staple"),
    ("password: {}", "Tr0ub4dor&3"),
    ("  password: {}\n  user: maya", "swordfish"),
    ('"password": "{}"', "hunter2"),
    ('{{\\"password\\": \\"{}\\"}}', "hunter2"),
    ("spring.datasource.password={}", "S3cret-Pw"),
    ('password = "{}"  # for the tests', "letmein"),
    ('String dbPassword = "{}";', "letmein99"),
    ("<password>{}</password>", "hunter2"),
    ("curl -u maya:{} https://example.com", "S3cretPw9"),
    ("mysql -h db -u root -p{} shop", "S3cretPw9"),
    ("sshpass -p '{}' ssh maya@host", "S3cretPw9"),
    ("psql --password={} -h db", "S3cretPw9"),
    ("tool login --token {}", some(24)),
    ("PGPASSWORD={} pg_dump shop", "S3cretPw9"),
    ("machine example.com login maya password {}", "S3cretPw9"),
    ("ALTER USER maya IDENTIFIED BY '{}';", "S3cretPw9"),
    ("sudo_password => {}", "S3cretPw9"),
    ("Secret Key: {}", some(32)),
    ("the signing key is {}", some(40, HEX)),
    ('webhook secret: "{}"', some(32)),
]  # fmt: skip
IN_PROSE = [
    ("my password is {}", "hunter2"),
    ("My password is {}.", "swordfish"),
    ("the password for the router is {}, by the way", "Admin123!"),
    ("Our wifi password is {}", "Sunflower!99"),
    ("wifi password: {}", "blueberry"),
    ("The Wi-Fi password at the cabin’s {}", "Moose2019"),
    ("Netflix password's {} now", "popcorn77"),
    ("password to my laptop is {}", "qwerty123!"),
    ("I changed my password to {}", "Blue$ky42"),
    ("Please set the password to {} for her", "Welcome1"),
    ("I changed it: old password was {}", "monkey12"),
    ("use {} as the password", "hunter2"),
    ("{} is my password", "hunter2"),
    ("log in with username maya and password {}", "tiger!88"),
    ("login: maya, password: {}", "tiger88"),
    ("user maya / pass {}", "tiger88"),
    ("credentials are maya / {}", "tiger88"),
    ("creds: maya:{}", "tiger88!"),
    ("username/password is {}", "admin/Passw0rd"),
    ("my passphrase is “{}”", "correct horse battery staple"),
    ('The passphrase is "{}", keep it safe', "purple monkey dishwasher"),
    ("passcode is {}", "778899"),
    ("the PIN for my card is {}", "4821"),
    ("my pin code: {}", "482190"),
    ("pwd: {}", "abc123"),
    ("pw is {}", "Summer2024"),
    ("**Password:** {}", "Summer2024"),
    ("My password is **{}**", "Summer2024"),
    ("the password is `{}`", "swordfish"),
    ("the password is:\n```\n{}\n```", "swordf1sh"),
    ("Das Passwort ist {}", "Geheim99"),
    ("Mein WLAN-Passwort lautet {}", "Sonne!2024"),
    ("mi contraseña es {}", "gato1234"),
    ("mon mot de passe est {}", "soleil75"),
    ("the root password has been changed to {}", "N3wRoot!"),
    ("password → {}", "Summer2024"),
    ("Password - {}", "Summer2024"),
    ("my gmail password is still {} lol", "iloveyou2"),
    ("the admin password is '{}'", "letmein"),
    ("You can get in with the password {}.", "Op3nSesame"),
]  # fmt: skip

LOOK_ALIKES = [
    "01JCQ8Z5RB9W3X7V2M4K6N8PTD", "session 20-1402-2f1c9a, turn [[20-1402-2f1c9a#^t3]]", "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "a1b2c3d is the first bad commit", "550e8400-e29b-41d4-a716-446655440000", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "/home/maya/projects/quaid/.quaid/index.db-wal", "C:\\Users\\Maya\\AppData\\Local\\Temp\\tmp4f8a2b1c",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=PLrAXtmErZgOeiKm4sgNOknGvNjby9efdf", "https://example.com/a?page=2&sort=desc&id=8f14e45fceea167a",
    "https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit", "https://github.com/maya/app/commit/9fceb02d0ae598e95dc970b74767f19372d61af8",
    "call me on +49 170 1234567 or 555-0134-8891", "on 2026-05-08T13:56:02Z", "the meeting is 2026-05-08 13:56", "ISBN 978-3-16-148410-0",
    "IBAN is not here but order 4821-9930-1177 is", "toolu_01A09q90qw90lq917835lq9x", "msg_01XFDUDYJgAACzvnptvVoYEL", "req_011CSHoEeqs5C35K2UUqR7Fy",
    "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12", "call_8fXkqT2mVb7ZpLrNcYdW3sHj", "password: required", "Password must be at least 12 characters.",
    "password is required", "The password is wrong.", "my password is expired again", "I forgot my password", "password reset", "reset your password at example.com",
    "Her password is too weak", "a password manager like 1Password", "the password is stored as a bcrypt hash", "the password was hashed with sha256",
    "passwords are hashed with argon2id", "password: str", "password: str | None = None", "password = get_password()", "password = input('Password: ')",
    "password=os.environ['DB_PASSWORD']", "password: process.env.DB_PASSWORD,", "password: ${DB_PASSWORD}", "DB_PASSWORD=$DB_PASSWORD", "password: <your-password>",
    "password: ********", "Password: ••••••••", "password=password", "const password = form.password.value;", "connect(user=user, password=pw)",
    "password: {{ vault_password }}", "password = settings.password", "def login(username: str, password: str) -> Token:", "if (password !== confirmPassword) {",
    "postgres://user:${DB_PASSWORD}@localhost/app", "postgres://localhost:5432/app", "postgres://user:password@localhost/app", "http://localhost:8080/@scope/package",
    "git@github.com:maya/app.git", "ssh://git@github.com:22/maya/app.git", "email me at maya@example.com", "max_tokens=4096", "tokens: 512 in, 64 out",
    "token: the smallest unit of text", "The token is expired", "the access token is short-lived", "Bearer tokens are sent in a header", "Authorization: required by the server",
    "the secret is to stay calm", "the secret to good coffee is 92 degrees", "her secret is safe with me", "a secret: she loves opera", "Secret Santa is on 2026-12-20",
    "api_key = os.getenv('OPENAI_API_KEY')", "ANTHROPIC_API_KEY is set", "Set OPENAI_API_KEY=your-api-key-here", "api_key=settings.api_key", "api_key: str = Field(...)",
    "apiKey: process.env.OPENAI_KEY_V2", "the primary key is user_id", "foreign key: account_id", "key: value", "Cache key: notes/facts/maya", "access key Alt+Shift+4",
    "secretKeyRef: {name: my-app-secret-v2}", "secretName: my-app-tls-2024", "token_count: 1234567", "next_page=2", "pin 4 is ground", "Pin the tab, then reload", "pinned to 2.13.4",
    "the PIN is 4 digits", "pip install detect-secrets==1.5.0", "uses: actions/checkout@v4", "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYI\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Hq maya@laptop", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==", "AbstractSingletonProxyFactoryBean2",
    "Donaudampfschifffahrtsgesellschaftskapitän", "thisIsAVeryLongCamelCaseIdentifierName2", "test_what_is_wrong_twice_is_given_with_its_problems_2",
    "Maya passed 3 exams", "passport number A12345678 is in the drawer", "compass: north", "the pass is 2,400 m high", "boarding pass 17B", "I pass on that",
    "sk-learn-contrib-imbalanced-2024", "ghp tokens begin with ghp_", "AKIA is how AWS keys begin", "uid=1000(maya) gid=1000(maya)", "user/pass are wrong",
    "login: maya", "credentials are invalid", "the login is broken: see /auth/login", "docker run -p 8080:80 -u 1000:1000 nginx", "mysql -u root -p", "ssh -p 2222 host",
]  # fmt: skip

"""An issuer of OAuth tokens: its keys, the address that publishes them and can be made to hang, and what it signs."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://memory.example.org"
ISSUER = "https://login.example.org"
KEYS = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def publish() -> bytes:
    """The document of its keys, and one that no server takes."""
    listed = []
    for name, key in KEYS.items():
        kind = jwt.get_algorithm_by_name(name)
        listed.append({**json.loads(kind.to_jwk(key.public_key())), "kid": name, "alg": name, "use": "sig"})
    return json.dumps({"keys": [*listed, {"kty": "oct", "k": "c2VjcmV0", "kid": "oct", "alg": "HS256"}]}).encode()


def make_token(algorithm: str = "RS256", key: object = None, kid: str = "", **claims: object) -> str:
    """A token of the issuer. A claim that is None is left out."""
    told = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "u1", "exp": int(time.time()) + 600, "preferred_username": "maya",
        "client_id": "claude", "scope": "openid quaid:team:read quaid:team:write", **claims,
    }  # fmt: skip
    told = {name: value for name, value in told.items() if value is not None}
    return jwt.encode(told, key or KEYS[algorithm], algorithm, headers={"kid": kid or algorithm})


class KeyServer:
    """The address of the keys. After `hang` it takes requests and answers none until `answer_again`."""

    def __init__(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        self.body, self.status = body or publish(), status
        self.requests = self.waiting = 0
        self._may_answer = threading.Event()
        self._may_answer.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                outer.waiting += 1
                outer._may_answer.wait()
                outer.waiting -= 1
                with suppress(ConnectionError):  # nobody waited for it
                    self.send_response(outer.status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(outer.body)))
                    self.end_headers()
                    self.wfile.write(outer.body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/jwks.json"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def hang(self) -> None:
        self._may_answer.clear()

    def answer_again(self) -> None:
        self._may_answer.set()

    def close(self) -> None:
        self.answer_again()
        self._http.shutdown()
        self._http.server_close()

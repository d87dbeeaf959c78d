"""Where in a text its secrets are, and whether two are the same."""

from __future__ import annotations

from quaid.redaction import locate

KEY = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n"
BODIES = ("MIIEowIBAAKCAQEA7bq1u8Yc\nq2Rk9vLx", "MIIEowIBAAKCAQEA9zz8x2Kd\nm4Tn1wPq")


def test_a_secret_has_its_kind_and_line_and_is_not_in_what_is_printed():
    (found,) = locate("Login\n\nMy password is swordfish-77!\n")
    assert (found.kind, found.line) == ("password", 3)
    assert "swordfish" not in repr(found)


def test_a_secret_is_the_same_in_other_words_around_it_and_another_one_is_not():
    texts = ["My password is swordfish-77!", "Note: my password is swordfish-77! Yes.", "My password is haddock-9923!"]
    one, again, other = (locate(text)[0].text for text in texts)
    assert one == again != other


def test_keys_of_several_lines_differ_by_each_of_them():
    one, other = (locate(KEY.format(body)) for body in BODIES)
    assert [(secret.kind, secret.line) for secret in one] == [(secret.kind, secret.line) for secret in other]
    assert [secret.line for secret in one] == [1]
    assert one != other


def test_a_private_span_hides_none_and_a_placeholder_is_none():
    assert [secret.line for secret in locate("Hi\n<private>\nMy password is swordfish-77!\n</private>\n")] == [3]
    assert locate("My password is [redacted: password]\n") == ()
    line = "old password: [redacted: password], new password: swordfish-77!"
    assert [secret.kind for secret in locate(line)] == ["password"]

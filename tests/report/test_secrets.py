"""Secrets are found in the whole history, and named by place and kind alone."""

from __future__ import annotations

from vaults import Vault

from quaid.report.secrets import find_secrets

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_secret_that_only_an_old_commit_has_is_named_by_its_first_place_and_never_shown(vault: Vault) -> None:
    vault.write("Notes/login.md", "My password is swordfish-77!\n")
    first = vault.save()
    vault.write("Notes/login.md", "Nothing any more.\n")
    vault.save(f"took away {TOKEN}")
    found, *_ = find_secrets(vault.root)
    assert [(secret.path, secret.commit) for secret in found] == [("Notes/login.md", first), ("", vault.head())]
    assert "swordfish" not in repr(found)
    assert TOKEN not in repr(found)


def test_a_history_without_secrets_has_none(vault: Vault) -> None:
    vault.write("Notes/garden.md", "Tomatoes need water every day.\n")
    vault.save()
    assert find_secrets(vault.root)[0] == []

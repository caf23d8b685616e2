"""Secrets that a program prints when it fails are kept from everybody else."""

import pytest

from bullpen.text.secrets import MASK, without_secrets


@pytest.mark.parametrize(
    "secret",
    [
        "-".join(("sk", "ant", "api03", "0123456789abcdef")),
        "sk-proj-0123456789abcdef",
        "sk_live_0123456789abcdef",
        "ghp_0123456789abcdef0123",
        "github_pat_0123456789abcdef0123",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-0123456789abcdefghij",
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_of_a_known_form(secret: str) -> None:
    assert without_secrets(f"Error: {secret} was refused", {}) == f"Error: {MASK} was refused"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("password=hunter2hunter2 is wrong", f"password={MASK} is wrong"),
        ('{"api_key": "abcdef123456"}', f'{{"api_key": "{MASK}"}}'),
        ("MY_AUTH_TOKEN: abcdef123456", f"MY_AUTH_TOKEN: {MASK}"),
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {MASK}"),
        ("postgres://me:hunter2@db/x", f"postgres://me:{MASK}@db/x"),
    ],
)
def test_secrets_that_a_word_announces(said: str, kept: str) -> None:
    assert without_secrets(said, {}) == kept


def test_the_values_of_our_own_variables() -> None:
    environment = {"DB_PASSWORD": "correct horse", "EDITOR": "correct", "API_KEY": "short", "KEY_FILE": "/etc/key.pem"}

    assert without_secrets("correct horse, correct, short, /etc/key.pem", environment) == (
        f"{MASK}, correct, short, /etc/key.pem"
    )


@pytest.mark.parametrize(
    "said",
    [
        "401 Unauthorized",
        "token limit reached: 200000",
        "no such file: /home/a/.env",
        "task-sk-learn",
        "the key is wrong",
    ],
)
def test_what_is_no_secret_stays(said: str) -> None:
    assert without_secrets(said, {}) == said

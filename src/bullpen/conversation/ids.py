"""Ids of conversations that people can say and remember: quiet-river-4f2a."""

import secrets

ADJECTIVES = """
    amber bold brave bright brisk calm clear clever cool copper crisp deep early eager fair fast fine fresh gentle
    glad golden good grand green happy honest humble jolly keen kind late light lively loyal lucky merry mild neat
    noble patient plain polite proud quick quiet rapid ready rich round sharp silver simple smooth soft solid sunny
    swift tidy true warm wild wise young
"""
NOUNS = """
    anchor apple arrow badger beacon birch bridge brook cedar cliff cloud comet coral crane creek delta dune eagle
    ember falcon fern field finch flame forest fox garden glade harbor hawk heron hill island juniper lake lantern
    leaf lion maple meadow moon mountain oak ocean otter owl path pebble pine planet pond rain reef river robin sail
    sparrow spring star stone thistle tiger tree valley
"""


def new_conversation_id() -> str:
    """Return an id that is new as far as chance can tell."""
    return f"{_one_of(ADJECTIVES)}-{_one_of(NOUNS)}-{secrets.token_hex(3)}"


def _one_of(words: str) -> str:
    return secrets.choice(words.split())

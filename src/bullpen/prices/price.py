"""Price: what a model costs, and what somebody's tokens cost with it."""

from msgspec import Struct

from bullpen.turn_events import Usage

MILLION = 1_000_000


class Price(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """In US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input that the vendor had seen before; None: as much as any other."""

    def of(self, usage: Usage) -> float:
        """Return what tokens cost. Agents may report anything: there is never less than none, nor more cached."""
        entered, said = max(0, usage.input_tokens), max(0, usage.output_tokens)
        seen = min(max(0, usage.cached_tokens), entered)
        cached = self.input if self.cached is None else self.cached
        return ((entered - seen) * self.input + seen * cached + said * self.output) / MILLION

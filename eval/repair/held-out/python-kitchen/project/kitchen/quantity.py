"""Amounts as cooks write them: "1 1/2 cups", "250 g", "3"."""

from fractions import Fraction

UNITS = {"g": 1, "kg": 1000, "ml": 1, "l": 1000, "cup": 240, "tbsp": 15, "tsp": 5}
WEIGHTS = {"g", "kg"}


class Quantity:
    def __init__(self, amount, unit=None):
        self.amount = Fraction(amount)
        self.unit = unit

    def __eq__(self, other):
        return self.amount == other.amount and self.unit == other.unit

    def __repr__(self):
        return f"Quantity({self.amount}, {self.unit!r})"

    def kind(self):
        if self.unit is None:
            return "count"
        return "weight" if self.unit in WEIGHTS else "volume"

    def base(self):
        """The amount in grams, millilitres or pieces."""
        return self.amount * UNITS.get(self.unit, 1)

    def plus(self, other):
        if self.kind() != other.kind():
            raise ValueError(f"cannot add {other.kind()} to {self.kind()}")
        if self.unit is None:
            return Quantity(self.amount + other.amount)
        return Quantity((self.base() + other.base()) / UNITS[self.unit], self.unit)

    def show(self):
        whole, rest = divmod(self.amount, 1)
        parts = []
        if whole or not rest:
            parts.append(str(whole))
        if rest:
            parts.append(f"{rest.numerator}/{rest.denominator}")
        if self.unit:
            parts.append(self.unit)
        return " ".join(parts)


def parse(text):
    """Reads an amount; what is left of the text comes back with it."""
    words = text.strip().split()
    amount = Fraction(0)
    used = 0
    for word in words:
        try:
            amount += Fraction(word)
        except ValueError:
            break
        used += 1
    if used == 0:
        return Quantity(1), " ".join(words)
    unit = None
    if used < len(words):
        name = words[used].lower().rstrip(".")
        if name.endswith("s") and name[:-1] in UNITS:
            name = name[:-1]
        if name in UNITS:
            unit = name
            used += 1
    return Quantity(amount, unit), " ".join(words[used:])

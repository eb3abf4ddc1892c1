"""What a unit is, and how amounts are turned from one into another."""

from decimal import Decimal, localcontext


class UnitError(ValueError):
    """A unit that is not known, or of another kind."""


class Unit:
    """A unit: its names, and how many of the kind's base unit it is."""

    def __init__(self, kind, name, symbol, factor):
        self.kind = kind
        self.name = name
        self.symbol = symbol
        self.factor = Decimal(factor)

    def __repr__(self):
        return f"<{self.kind}: {self.name}>"

    def names(self):
        plural = self.name + "s"
        return {self.name, plural, self.symbol}


def convert(amount, given, wanted):
    """So many of one unit, in another of the same kind."""
    if given.kind != wanted.kind:
        raise UnitError(f"{given.name} is a unit of {given.kind}, {wanted.name} of {wanted.kind}")
    with localcontext() as context:
        context.prec = 28
        return Decimal(amount) * given.factor / wanted.factor

"""What takes something off a price."""

from decimal import Decimal


class Percent:
    """A part of the whole, from a smallest sum on."""

    def __init__(self, percent, from_sum=0):
        self.percent = Decimal(percent)
        self.from_sum = Decimal(from_sum)

    def of(self, whole, lines):
        if whole > self.from_sum:
            return whole * self.percent / 100
        return Decimal(0)


class OneFree:
    """One article free for every so many of it."""

    def __init__(self, name, every):
        self.name = name
        self.every = every

    def of(self, whole, lines):
        mine = [line for line in lines if line.name == self.name]
        return sum((line.price * (line.count // self.every) for line in mine), Decimal(0))

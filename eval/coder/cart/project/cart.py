"""Prices of a basket."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


class Line:
    """So many of one article."""

    def __init__(self, name, price, count=1):
        if count < 1:
            raise ValueError(f"{name}: a line has at least one article")
        self.name = name
        self.price = Decimal(price)
        self.count = count

    def total(self):
        return self.price * self.count


class Cart:
    """Lines in the order in which they were added."""

    def __init__(self, discounts=()):
        self.lines = []
        self.discounts = list(discounts)

    def add(self, name, price, count=1):
        self.lines.append(Line(name, price, count))

    def subtotal(self):
        return sum((line.total() for line in self.lines), Decimal(0))

    def total(self):
        whole = self.subtotal()
        for discount in self.discounts:
            whole -= discount.of(whole, self.lines)
        return max(whole, Decimal(0)).quantize(CENT, ROUND_HALF_UP)

"""What is at home."""

from .quantity import Quantity


class Pantry:
    def __init__(self):
        self.stock = {}

    def add(self, item, quantity, expires=None):
        self.stock.setdefault(item, []).append((expires, quantity))
        # What goes off first stands first; what never does stands last.
        self.stock[item].sort(key=lambda lot: (lot[0] is None, lot[0] or 0))

    def has(self, item):
        return sum(quantity.base() for _, quantity in self.stock.get(item, []))

    def missing(self, recipe):
        """What has to be bought, in base units."""
        wanted = {}
        for item, quantity in recipe.ingredients.items():
            short = quantity.base() - self.has(item)
            if short > 0:
                wanted[item] = short
        return wanted

    def use(self, item, amount):
        """Takes an amount, oldest first; nothing is taken where there is too little."""
        if amount > self.has(item):
            raise ValueError(f"not enough {item}")
        left = []
        for expires, quantity in self.stock.get(item, []):
            taken = min(amount, quantity.base())
            amount -= taken
            rest = quantity.base() - taken
            if rest > 0:
                left.append((expires, Quantity(quantity.amount * rest / quantity.base(), quantity.unit)))
        if left:
            self.stock[item] = left
        else:
            self.stock.pop(item, None)

    def expired(self, today):
        """Names of what should not be eaten any more, in order."""
        found = []
        for item, lots in self.stock.items():
            if any(expires is not None and expires < today for expires, _ in lots):
                found.append(item)
        return sorted(found)

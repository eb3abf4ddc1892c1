"""A small shop: carts, prices and orders."""

import math


class Cart:
    def __init__(self, owner):
        self.owner = owner
        self.items = []

    def add(self, item, count=1):
        # Counts below one are a mistake of the caller.
        if count < 1:
            raise ValueError("count must be positive")
        for _ in range(count):
            self.items.append(item)
        return len(self.items)

    def remove(self, item, count=1):
        # Counts below one are a mistake of the caller.
        if count < 1:
            raise ValueError("count must be positive")
        for _ in range(count):
            self.items.remove(item)
        return len(self.items)

    def total(self, prices, rate=0.2):
        """Adds up the prices of all items in the cart and adds the tax."""
        net = sum(prices[item] for item in self.items)

        tax = net * rate
        return math.floor((net + tax) * 100) / 100


def parse_order(line):
    name, _, rest = line.partition(':')
    if not rest:
        return {'name': name.strip(), 'items': []}
    items = [word.strip() for word in rest.split(',')]
    return {'name': name.strip(), 'items': items}


def test_total_of_one():
    cart = Cart("ada")
    cart.add("tea")
    assert cart.total({"tea": 10}) == 12.0


def test_total_of_two():
    cart = Cart("ada")
    cart.add("tea", 2)
    assert cart.total({"tea": 10}) == 24.0

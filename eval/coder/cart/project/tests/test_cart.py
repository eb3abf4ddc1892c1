import unittest
from decimal import Decimal

from cart import Cart
from discounts import OneFree, Percent


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(Cart().total(), Decimal("0.00"))

    def test_lines_are_added_up(self):
        cart = Cart()
        cart.add("tea", "2.50", 2)
        cart.add("cup", "7.00")
        self.assertEqual(cart.total(), Decimal("12.00"))

    def test_a_percentage_is_taken_off(self):
        cart = Cart([Percent(10)])
        cart.add("pot", "30.00")
        self.assertEqual(cart.total(), Decimal("27.00"))

    def test_every_third_is_free(self):
        cart = Cart([OneFree("tea", 3)])
        cart.add("tea", "2.50", 7)
        self.assertEqual(cart.total(), Decimal("12.50"))

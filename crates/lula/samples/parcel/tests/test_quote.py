import unittest

from parcel.quote import describe, order_price, parcel_price


class Quote(unittest.TestCase):
    def test_abroad(self):
        self.assertEqual(parcel_price(800, "europe"), 1_240)

    def test_small_order_has_no_discount(self):
        self.assertEqual(order_price([100, 600]), 980)

    def test_large_order_is_ten_percent_off(self):
        self.assertEqual(order_price([100] * 5), 1_755)

    def test_describe(self):
        self.assertEqual(describe(1_205), "12.05 EUR")

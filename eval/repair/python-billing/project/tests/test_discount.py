import unittest

from billing import discount


class Rates(unittest.TestCase):
    def test_tiers_start_at_their_minimum(self):
        self.assertEqual(discount.tier_rate(10), 5)
        self.assertEqual(discount.tier_rate(49), 5)
        self.assertEqual(discount.tier_rate(100), 15)
        self.assertEqual(discount.tier_rate(1), 0)

    def test_loyalty_grows_from_the_third_year(self):
        self.assertEqual(discount.loyalty_rate(2), 0)
        self.assertEqual(discount.loyalty_rate(3), 2)
        self.assertEqual(discount.loyalty_rate(5), 6)

    def test_total_is_capped(self):
        self.assertEqual(discount.total_rate(100, 10, 20), 30)
        self.assertEqual(discount.total_rate(10, 3, 1), 8)

    def test_discounted(self):
        self.assertEqual(discount.discounted(10000, 10, 0), 9500)


class Coupons(unittest.TestCase):
    def test_best_valid_coupon(self):
        coupons = [
            {"rate": 5, "expires": 20},
            {"rate": 9, "expires": 10},
            {"rate": 7, "expires": 30},
            {"rate": 8, "expires": 30, "used": True},
        ]
        self.assertEqual(discount.best_coupon(coupons, 15)["rate"], 7)

    def test_a_coupon_holds_on_its_last_day(self):
        self.assertEqual(discount.best_coupon([{"rate": 5, "expires": 15}], 15)["rate"], 5)

    def test_no_coupon(self):
        self.assertIsNone(discount.best_coupon([], 1))

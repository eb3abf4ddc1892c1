import unittest

from parcel.rates import TooHeavy, base_rate, surcharge


class BaseRate(unittest.TestCase):
    def test_light_parcel(self):
        self.assertEqual(base_rate(120), 390)

    def test_weight_on_the_edge_of_a_band(self):
        self.assertEqual(base_rate(500), 390)

    def test_just_above_the_edge(self):
        self.assertEqual(base_rate(501), 590)

    def test_heaviest_parcel(self):
        self.assertEqual(base_rate(10_000), 1_490)

    def test_too_heavy(self):
        with self.assertRaises(TooHeavy):
            base_rate(10_001)

    def test_weightless(self):
        with self.assertRaises(ValueError):
            base_rate(0)


class Surcharge(unittest.TestCase):
    def test_at_home(self):
        self.assertEqual(surcharge("domestic"), 0)

    def test_unknown_zone(self):
        with self.assertRaises(ValueError):
            surcharge("moon")

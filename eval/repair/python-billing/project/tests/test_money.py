import unittest

from billing import money


class Parse(unittest.TestCase):
    def test_reads_whole_and_fraction(self):
        self.assertEqual(money.parse("12.50"), 1250)
        self.assertEqual(money.parse("7"), 700)

    def test_short_fraction_means_tens(self):
        self.assertEqual(money.parse("3.5"), 350)

    def test_signs_and_separators(self):
        self.assertEqual(money.parse("$1,200"), 120000)
        self.assertEqual(money.parse("-3.25"), -325)

    def test_refuses_words(self):
        with self.assertRaises(ValueError):
            money.parse("ten")


class Show(unittest.TestCase):
    def test_shows_cents(self):
        self.assertEqual(money.show(1205), "$12.05")
        self.assertEqual(money.show(-50), "-$0.50")


class Split(unittest.TestCase):
    def test_no_cent_is_lost(self):
        self.assertEqual(money.split(100, 3), [34, 33, 33])
        self.assertEqual(sum(money.split(1001, 7)), 1001)

    def test_nobody(self):
        with self.assertRaises(ValueError):
            money.split(100, 0)

    def test_percent_rounds_half_up(self):
        self.assertEqual(money.percent(150, 1), 2)
        self.assertEqual(money.percent(149, 1), 1)


if __name__ == "__main__":
    unittest.main()

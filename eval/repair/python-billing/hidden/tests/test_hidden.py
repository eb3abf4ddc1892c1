import unittest

from billing import discount, money
from billing.invoice import Invoice, Line
from billing.ledger import Ledger


class Hidden(unittest.TestCase):
    def test_parse(self):
        for text, cents in [("0.07", 7), ("-0.50", -50), ("1,234,567.8", 123456780), (" 9 ", 900), ("2.999", 299)]:
            self.assertEqual(money.parse(text), cents)
        for text in ["", "1.x", "--1", "x.10"]:
            with self.assertRaises(ValueError):
                money.parse(text)

    def test_show(self):
        for cents, text in [(0, "$0.00"), (123456789, "$1,234,567.89"), (-101, "-$1.01"), (9, "$0.09")]:
            self.assertEqual(money.show(cents), text)

    def test_split(self):
        self.assertEqual(money.split(5, 5), [1] * 5)
        self.assertEqual(money.split(7, 2), [4, 3])
        self.assertEqual(money.split(0, 3), [0, 0, 0])
        self.assertEqual(money.split(11, 4), [3, 3, 3, 2])
        with self.assertRaises(ValueError):
            money.split(5, -1)

    def test_split_nobody(self):
        for nobody in (0, -1):
            with self.assertRaises(ValueError):
                money.split(10, nobody)

    def test_merging(self):
        made = Invoice("M", 0)
        first = made.add(Line("a", 100, 2))
        self.assertIs(made.add(Line("a", 100, 3)), first)
        made.add(Line("a", 90))
        made.add(Line("b", 100))
        self.assertEqual([line.quantity for line in made.lines], [5, 1, 1])

    def test_empty_is_not_paid(self):
        made = Invoice("E", 0)
        self.assertFalse(made.is_paid())
        self.assertTrue(made.is_overdue(15))
        made.add(Line("a", 0))
        self.assertTrue(made.is_paid())

    def test_overdue_ties(self):
        made = Ledger()
        for name, price in (("z", 70), ("y", 70), ("x", 90)):
            invoice = Invoice(name, 0)
            invoice.add(Line("w", price, 1, taxed=False))
            made.book(name, invoice)
        self.assertEqual(made.overdue(50), [("x", 90), ("y", 70), ("z", 70)])

    def test_percent(self):
        self.assertEqual([money.percent(c, r) for c, r in [(100, 19), (50, 1), (49, 1), (1000, 0), (333, 33)]], [19, 1, 0, 0, 110])

    def test_tiers(self):
        self.assertEqual([discount.tier_rate(q) for q in [0, 9, 10, 50, 51, 99, 100, 5000]], [0, 0, 5, 10, 10, 10, 15, 15])

    def test_loyalty(self):
        self.assertEqual([discount.loyalty_rate(y) for y in [0, 2, 3, 4, 9]], [0, 0, 2, 4, 14])

    def test_total_rate(self):
        self.assertEqual(discount.total_rate(50, 4, 3), 17)
        self.assertEqual(discount.total_rate(1, 0), 0)
        self.assertEqual(discount.total_rate(100, 9, 0), 29)
        self.assertEqual(discount.total_rate(100, 9, 1), 30)
        self.assertEqual(discount.total_rate(100, 9, 2), 30)

    def test_discounted(self):
        self.assertEqual(discount.discounted(999, 50, 3), 879)

    def test_coupons(self):
        used = [{"rate": 5, "expires": 9, "used": True}, {"rate": 3, "expires": 8}, {"rate": 4, "expires": 7}]
        self.assertEqual(discount.best_coupon(used, 8)["rate"], 3)
        self.assertIsNone(discount.best_coupon(used, 9))
        self.assertEqual(discount.best_coupon(used, 1)["rate"], 4)

    def test_invoice(self):
        made = Invoice("X", 0, years=3)
        made.add(Line("a", 100, 10))
        made.add(Line("b", 50, 1, taxed=False))
        made.add(Line("a", 120, 1))
        self.assertEqual(len(made.lines), 3)
        self.assertEqual(made.net(), 1170 - 82)
        self.assertEqual(made.tax(), 213)
        self.assertEqual(made.due(), made.gross())
        self.assertEqual(made.remove("a"), 2)
        self.assertEqual([line.name for line in made.lines], ["b"])
        with self.assertRaises(ValueError):
            made.pay(-5)
        self.assertEqual(made.pay(9), 40)
        self.assertEqual(made.payments, [9])
        self.assertEqual(made.summary(), "1 x b: $0.50\ndue: $0.40")
        self.assertFalse(made.is_overdue(14))
        self.assertTrue(made.is_overdue(15))
        made.pay(100)
        self.assertFalse(made.is_overdue(99))
        self.assertEqual(made.due(), 0)

    def test_ledger(self):
        made = Ledger()
        for number in range(25):
            invoice = Invoice(str(number), 100 - number)
            invoice.add(Line("w", 100, 1, taxed=False))
            made.book("c", invoice)
        self.assertEqual([i.number for i in made.page("c", 3)], ["20", "21", "22", "23", "24"])
        self.assertEqual(len(made.page("c", 1)), 10)
        self.assertEqual([i.number for i in made.page("c", 2, 3)], ["3", "4", "5"])
        self.assertEqual(made.settle("c", 250), 0)
        self.assertEqual([made.find(str(n)).due() for n in (24, 23, 22, 21)], [0, 0, 50, 100])
        self.assertEqual(made.balance("c"), 2250)
        self.assertEqual(made.overdue(96), [("c", 350)])
        self.assertEqual(made.settle("c", 5000), 2750)
        self.assertEqual(made.overdue(500), [])
        for name in ("z", "y"):
            invoice = Invoice(name, 0)
            invoice.add(Line("w", 70, 1, taxed=False))
            made.book(name, invoice)
        self.assertEqual(made.overdue(50), [("y", 70), ("z", 70)])
        self.assertIsNone(made.find("nope"))

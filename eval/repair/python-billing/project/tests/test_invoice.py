import unittest

from billing.invoice import Invoice, Line


def invoice():
    made = Invoice("A1", issued=100)
    made.add(Line("pen", 200, 3))
    made.add(Line("book", 1500))
    return made


class Totals(unittest.TestCase):
    def test_net_and_tax(self):
        self.assertEqual(invoice().net(), 2100)
        self.assertEqual(invoice().tax(), 399)
        self.assertEqual(invoice().gross(), 2499)

    def test_untaxed_lines(self):
        made = invoice()
        made.add(Line("stamp", 100, 1, taxed=False))
        self.assertEqual(made.tax(), 399)

    def test_same_article_is_one_line(self):
        made = invoice()
        made.add(Line("pen", 200, 2))
        self.assertEqual(len(made.lines), 2)
        self.assertEqual(made.lines[0].quantity, 5)

    def test_remove_says_how_many(self):
        made = invoice()
        self.assertEqual(made.remove("pen"), 1)
        self.assertEqual(made.remove("pen"), 0)


class Payment(unittest.TestCase):
    def test_due_falls_with_payments(self):
        made = invoice()
        self.assertEqual(made.pay(499), 2000)
        self.assertFalse(made.is_paid())
        self.assertEqual(made.pay(3000), 0)
        self.assertTrue(made.is_paid())

    def test_payment_must_be_positive(self):
        with self.assertRaises(ValueError):
            invoice().pay(0)

    def test_overdue_after_the_grace_days(self):
        made = invoice()
        self.assertFalse(made.is_overdue(114))
        self.assertTrue(made.is_overdue(115))

    def test_empty_invoice_is_not_paid(self):
        self.assertFalse(Invoice("E", 1).is_paid())

    def test_summary(self):
        self.assertEqual(invoice().summary(), "3 x pen: $6.00\n1 x book: $15.00\ndue: $24.99")

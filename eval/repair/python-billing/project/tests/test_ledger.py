import unittest

from billing.invoice import Invoice, Line
from billing.ledger import Ledger


def ledger():
    made = Ledger()
    for number, customer, issued, price in [("1", "ann", 10, 1000), ("2", "bob", 5, 3000), ("3", "ann", 2, 500)]:
        invoice = Invoice(number, issued)
        invoice.add(Line("work", price, 1, taxed=False))
        made.book(customer, invoice)
    return made


class LedgerTest(unittest.TestCase):
    def test_balance(self):
        self.assertEqual(ledger().balance("ann"), 1500)

    def test_overdue_largest_first(self):
        self.assertEqual(ledger().overdue(30), [("bob", 3000), ("ann", 1500)])
        self.assertEqual(ledger().overdue(18), [("ann", 500)])

    def test_find(self):
        self.assertEqual(ledger().find("2").issued, 5)
        self.assertIsNone(ledger().find("9"))

    def test_settle_oldest_first(self):
        made = ledger()
        self.assertEqual(made.settle("ann", 700), 0)
        self.assertEqual(made.find("3").due(), 0)
        self.assertEqual(made.find("1").due(), 800)
        self.assertEqual(made.settle("ann", 1000), 200)

    def test_pages(self):
        made = ledger()
        self.assertEqual([i.number for i in made.page("ann", 1, 1)], ["1"])
        self.assertEqual([i.number for i in made.page("ann", 2, 1)], ["3"])

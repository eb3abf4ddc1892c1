"""Invoices: lines, totals, payments and reminders."""

from billing.discount import discounted
from billing.money import percent, show

TAX_RATE = 19
GRACE_DAYS = 14


class Line:
    def __init__(self, name, price, quantity=1, taxed=True):
        self.name = name
        self.price = price
        self.quantity = quantity
        self.taxed = taxed

    def total(self):
        return self.price * self.quantity


class Invoice:
    def __init__(self, number, issued, years=0):
        self.number = number
        self.issued = issued
        self.years = years
        self.lines = []
        self.payments = []

    def add(self, line):
        """Adds a line; the same article at the same price is one line."""
        for known in self.lines:
            if known.name == line.name and known.price == line.price:
                known.quantity += line.quantity
                return known
        self.lines.append(line)
        return line

    def remove(self, name):
        before = len(self.lines)
        self.lines = [line for line in self.lines if line.name != name]
        return before - len(self.lines)

    def net(self):
        quantity = sum(line.quantity for line in self.lines)
        return discounted(sum(line.total() for line in self.lines), quantity, self.years)

    def tax(self):
        taxable = sum(line.total() for line in self.lines if line.taxed)
        return percent(taxable, TAX_RATE)

    def gross(self):
        return self.net() + self.tax()

    def pay(self, cents):
        if cents <= 0:
            raise ValueError("a payment must be positive")
        self.payments.append(cents)
        return self.due()

    def due(self):
        return max(self.gross() - sum(self.payments), 0)

    def is_paid(self):
        return bool(self.lines) and self.due() == 0

    def is_overdue(self, today):
        return not self.is_paid() and today - self.issued > GRACE_DAYS

    def summary(self):
        lines = [f"{line.quantity} x {line.name}: {show(line.total())}" for line in self.lines]
        lines.append(f"due: {show(self.due())}")
        return "\n".join(lines)

"""A ledger of invoices by customer."""

from collections import defaultdict


class Ledger:
    def __init__(self):
        self.by_customer = defaultdict(list)

    def book(self, customer, invoice):
        self.by_customer[customer].append(invoice)

    def balance(self, customer):
        return sum(invoice.due() for invoice in self.by_customer[customer])

    def overdue(self, today):
        """Customers with something overdue and how much, the largest first."""
        found = {}
        for customer, invoices in self.by_customer.items():
            late = [i.due() for i in invoices if i.is_overdue(today)]
            if late:
                found[customer] = sum(late)
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    def find(self, number):
        for invoices in self.by_customer.values():
            for invoice in invoices:
                if invoice.number == number:
                    return invoice
        return None

    def settle(self, customer, cents):
        """Pays the oldest invoices first; returns what is left over."""
        for invoice in sorted(self.by_customer[customer], key=lambda i: i.issued):
            if cents <= 0:
                break
            amount = min(cents, invoice.due())
            if amount > 0:
                invoice.pay(amount)
                cents -= amount
        return cents

    def page(self, customer, number, size=10):
        """One page of a customer's invoices, counted from one."""
        start = (number - 1) * size
        return self.by_customer[customer][start:start + size]

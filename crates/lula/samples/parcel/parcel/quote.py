"""Quotes for orders of several parcels."""

from parcel.rates import base_rate, surcharge

DISCOUNT_FROM = 5
DISCOUNT_PERCENT = 10


def parcel_price(grams, zone="domestic"):
    """The price of one parcel."""
    return base_rate(grams) + surcharge(zone)


def order_price(parcels, zone="domestic"):
    """The price of an order; five parcels and more are ten percent off."""
    total = sum(parcel_price(grams, zone) for grams in parcels)
    if len(parcels) >= DISCOUNT_FROM:
        total -= total * DISCOUNT_PERCENT // 100
    return total


def describe(cents):
    """A price as people write it."""
    return f"{cents // 100}.{cents % 100:02d} EUR"

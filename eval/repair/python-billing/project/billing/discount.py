"""Discounts by quantity, coupon and loyalty."""

from billing.money import percent

TIERS = [(100, 15), (50, 10), (10, 5)]
LOYALTY_YEARS = 3
LOYALTY_RATE = 2
MAX_RATE = 30


def tier_rate(quantity):
    """The rate of the first tier that the quantity reaches."""
    for minimum, rate in TIERS:
        if quantity >= minimum:
            return rate
    return 0


def loyalty_rate(years):
    if years < LOYALTY_YEARS:
        return 0
    return LOYALTY_RATE * (years - LOYALTY_YEARS + 1)


def total_rate(quantity, years, coupon=0):
    """All rates together, capped."""
    rate = tier_rate(quantity) + loyalty_rate(years) + coupon
    return min(rate, MAX_RATE)


def discounted(cents, quantity, years, coupon=0):
    return cents - percent(cents, total_rate(quantity, years, coupon))


def best_coupon(coupons, today):
    """The highest rate among coupons that have not expired, or none."""
    valid = [c for c in coupons if c["expires"] >= today and not c.get("used")]
    if not valid:
        return None
    return max(valid, key=lambda c: c["rate"])

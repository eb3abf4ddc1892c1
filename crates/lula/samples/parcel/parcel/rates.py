"""Rates by weight and zone."""

# Heaviest parcel of each band in grams, and its price in cents.
BANDS = [(500, 390), (2_000, 590), (5_000, 890), (10_000, 1_490)]

SURCHARGES = {"domestic": 0, "europe": 650, "world": 1_900}


class TooHeavy(ValueError):
    """No band takes a parcel of this weight."""


def base_rate(grams):
    """The price of a parcel before surcharges."""
    if grams <= 0:
        raise ValueError("a parcel weighs something")
    for heaviest, cents in BANDS:
        if grams < heaviest:
            return cents
    raise TooHeavy(f"{grams} g is more than {BANDS[-1][0]} g")


def surcharge(zone):
    """What a zone adds."""
    try:
        return SURCHARGES[zone]
    except KeyError:
        raise ValueError(f"unknown zone {zone!r}") from None

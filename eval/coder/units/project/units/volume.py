"""Units of volume. The base unit is the litre."""

from units.unit import Unit

KIND = "volume"
BASE = "litre"

# One millilitre is 0.001 of the base unit.
MILLILITRE = Unit(
    KIND,
    name="millilitre",
    symbol="ml",
    factor="0.001",
)

# One centilitre is 0.01 of the base unit.
CENTILITRE = Unit(
    KIND,
    name="centilitre",
    symbol="cl",
    factor="0.01",
)

# One decilitre is 0.1 of the base unit.
DECILITRE = Unit(
    KIND,
    name="decilitre",
    symbol="dl",
    factor="0.1",
)

# One litre is 1 of the base unit.
LITRE = Unit(
    KIND,
    name="litre",
    symbol="l",
    factor="1",
)

# One hectolitre is 100 of the base unit.
HECTOLITRE = Unit(
    KIND,
    name="hectolitre",
    symbol="hl",
    factor="100",
)

# One cubic metre is 1000 of the base unit.
CUBIC_METRE = Unit(
    KIND,
    name="cubic metre",
    symbol="m3",
    factor="1000",
)

# One pint is 0.56826125 of the base unit.
PINT = Unit(
    KIND,
    name="pint",
    symbol="pt",
    factor="0.56826125",
)

# One gallon is 4.54609 of the base unit.
GALLON = Unit(
    KIND,
    name="gallon",
    symbol="gal",
    factor="4.54609",
)

# One fluid ounce is 0.0284130625 of the base unit.
FLUID_OUNCE = Unit(
    KIND,
    name="fluid ounce",
    symbol="floz",
    factor="0.0284130625",
)

# One barrel is 158.987294928 of the base unit.
BARREL = Unit(
    KIND,
    name="barrel",
    symbol="bbl",
    factor="158.987294928",
)

ALL = [
    MILLILITRE,
    CENTILITRE,
    DECILITRE,
    LITRE,
    HECTOLITRE,
    CUBIC_METRE,
    PINT,
    GALLON,
    FLUID_OUNCE,
    BARREL,
]


def find(name):
    """The unit of volume of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of volume of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)

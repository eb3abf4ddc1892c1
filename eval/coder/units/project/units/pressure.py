"""Units of pressure. The base unit is the pascal."""

from units.unit import Unit

KIND = "pressure"
BASE = "pascal"

# One pascal is 1 of the base unit.
PASCAL = Unit(
    KIND,
    name="pascal",
    symbol="Pa",
    factor="1",
)

# One hectopascal is 100 of the base unit.
HECTOPASCAL = Unit(
    KIND,
    name="hectopascal",
    symbol="hPa",
    factor="100",
)

# One kilopascal is 1000 of the base unit.
KILOPASCAL = Unit(
    KIND,
    name="kilopascal",
    symbol="kPa",
    factor="1000",
)

# One bar is 100000 of the base unit.
BAR = Unit(
    KIND,
    name="bar",
    symbol="bar",
    factor="100000",
)

# One atmosphere is 101325 of the base unit.
ATMOSPHERE = Unit(
    KIND,
    name="atmosphere",
    symbol="atm",
    factor="101325",
)

# One torr is 133.322368421 of the base unit.
TORR = Unit(
    KIND,
    name="torr",
    symbol="Torr",
    factor="133.322368421",
)

# One pound per square inch is 6894.757293168 of the base unit.
POUND_PER_SQUARE_INCH = Unit(
    KIND,
    name="pound per square inch",
    symbol="psi",
    factor="6894.757293168",
)

ALL = [
    PASCAL,
    HECTOPASCAL,
    KILOPASCAL,
    BAR,
    ATMOSPHERE,
    TORR,
    POUND_PER_SQUARE_INCH,
]


def find(name):
    """The unit of pressure of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of pressure of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)

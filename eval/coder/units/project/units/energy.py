"""Units of energy. The base unit is the joule."""

from units.unit import Unit

KIND = "energy"
BASE = "joule"

# One joule is 1 of the base unit.
JOULE = Unit(
    KIND,
    name="joule",
    symbol="J",
    factor="1",
)

# One kilojoule is 1000 of the base unit.
KILOJOULE = Unit(
    KIND,
    name="kilojoule",
    symbol="kJ",
    factor="1000",
)

# One calorie is 4.184 of the base unit.
CALORIE = Unit(
    KIND,
    name="calorie",
    symbol="cal",
    factor="4.184",
)

# One kilocalorie is 4184 of the base unit.
KILOCALORIE = Unit(
    KIND,
    name="kilocalorie",
    symbol="kcal",
    factor="4184",
)

# One watt hour is 3600 of the base unit.
WATT_HOUR = Unit(
    KIND,
    name="watt hour",
    symbol="Wh",
    factor="3600",
)

# One kilowatt hour is 3600000 of the base unit.
KILOWATT_HOUR = Unit(
    KIND,
    name="kilowatt hour",
    symbol="kWh",
    factor="3600000",
)

# One therm is 105505585.262 of the base unit.
THERM = Unit(
    KIND,
    name="therm",
    symbol="thm",
    factor="105505585.262",
)

ALL = [
    JOULE,
    KILOJOULE,
    CALORIE,
    KILOCALORIE,
    WATT_HOUR,
    KILOWATT_HOUR,
    THERM,
]


def find(name):
    """The unit of energy of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of energy of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)

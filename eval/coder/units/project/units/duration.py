"""Units of duration. The base unit is the second."""

from units.unit import Unit

KIND = "duration"
BASE = "second"

# One millisecond is 0.001 of the base unit.
MILLISECOND = Unit(
    KIND,
    name="millisecond",
    symbol="ms",
    factor="0.001",
)

# One second is 1 of the base unit.
SECOND = Unit(
    KIND,
    name="second",
    symbol="s",
    factor="1",
)

# One minute is 60 of the base unit.
MINUTE = Unit(
    KIND,
    name="minute",
    symbol="min",
    factor="60",
)

# One hour is 3600 of the base unit.
HOUR = Unit(
    KIND,
    name="hour",
    symbol="h",
    factor="3600",
)

# One day is 86400 of the base unit.
DAY = Unit(
    KIND,
    name="day",
    symbol="d",
    factor="86400",
)

# One week is 604800 of the base unit.
WEEK = Unit(
    KIND,
    name="week",
    symbol="wk",
    factor="604800",
)

# One fortnight is 1209600 of the base unit.
FORTNIGHT = Unit(
    KIND,
    name="fortnight",
    symbol="fn",
    factor="1209600",
)

# One microsecond is 0.000001 of the base unit.
MICROSECOND = Unit(
    KIND,
    name="microsecond",
    symbol="us",
    factor="0.000001",
)

ALL = [
    MILLISECOND,
    SECOND,
    MINUTE,
    HOUR,
    DAY,
    WEEK,
    FORTNIGHT,
    MICROSECOND,
]


def find(name):
    """The unit of duration of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of duration of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)

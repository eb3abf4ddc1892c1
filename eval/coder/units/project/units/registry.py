"""All units, by name."""

from units import area, duration, energy, length, mass, pressure, speed, volume
from units.unit import UnitError

MODULES = [area, duration, energy, length, mass, pressure, speed, volume]


def find(name):
    """The unit of that name or symbol, of whatever kind."""
    for module in MODULES:
        unit = module.find(name.lower())
        if unit is not None:
            return unit
    raise UnitError(f"{name!r} is no unit")


def kinds():
    return [module.KIND for module in MODULES]

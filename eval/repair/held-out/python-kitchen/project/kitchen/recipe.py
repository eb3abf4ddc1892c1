"""Recipes: what goes in, how many it feeds, what it takes."""

from .quantity import Quantity, parse


class Recipe:
    def __init__(self, name, serves, ingredients, minutes=0, tags=()):
        self.name = name
        self.serves = serves
        self.ingredients = dict(ingredients)
        self.minutes = minutes
        self.tags = set(tags)

    @classmethod
    def read(cls, text):
        """A title line, `key: value` lines, then one ingredient a line."""
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        if not lines:
            raise ValueError("the recipe is empty")
        name, settings, ingredients = lines[0], {}, {}
        for line in lines[1:]:
            if ":" in line:
                key, value = line.split(":", 1)
                settings[key.strip().lower()] = value.strip()
                continue
            quantity, item = parse(line)
            if item in ingredients:
                quantity = ingredients[item].plus(quantity)
            ingredients[item] = quantity
        tags = [tag.strip() for tag in settings.get("tags", "").split(",") if tag.strip()]
        return cls(name, int(settings.get("serves", 1)), ingredients, minutes(settings.get("time", "")), tags)

    def scaled(self, people):
        factor = Quantity(people).amount / self.serves
        ingredients = {item: Quantity(q.amount * factor, q.unit) for item, q in self.ingredients.items()}
        return Recipe(self.name, people, ingredients, self.minutes, self.tags)


def minutes(text):
    """Minutes of "1h 20m", "45m", "2h"; nothing is no time."""
    total = 0
    number = ""
    for char in text:
        if char.isdigit():
            number += char
        elif char == "h":
            total += int(number) * 60
            number = ""
        elif char == "m":
            total += int(number)
            number = ""
    return total

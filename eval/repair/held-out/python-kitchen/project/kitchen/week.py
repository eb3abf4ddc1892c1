"""Which recipes to cook in a week."""


def suggest(recipes, pantry, limit=3, minutes=None, without=()):
    """The recipes that need the fewest things bought, quickest first among equals."""
    fitting = []
    for recipe in recipes:
        if minutes is not None and recipe.minutes > minutes:
            continue
        if any(item in recipe.ingredients for item in without):
            continue
        fitting.append(recipe)
    fitting.sort(key=lambda recipe: (len(pantry.missing(recipe)), recipe.minutes, recipe.name))
    return fitting[:limit]


def rotate(recipes, days, gap=2):
    """A recipe for each day, none again within `gap` days of the last time; None where none fits."""
    last = {}
    plan = []
    for day in range(days):
        chosen = None
        for recipe in recipes:
            if recipe not in last or day - last[recipe] > gap:
                chosen = recipe
                break
        if chosen is not None:
            last[chosen] = day
        plan.append(chosen)
    return plan


def shopping(recipes):
    """All ingredients of several recipes together, by name."""
    together = {}
    for recipe in recipes:
        for item, quantity in recipe.ingredients.items():
            if item in together:
                together[item] = together[item].plus(quantity)
            else:
                together[item] = quantity
    return dict(sorted(together.items()))

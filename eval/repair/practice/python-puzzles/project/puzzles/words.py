def frequent(text, count):
    """The words that come most often, the most frequent first, equals by alphabet."""
    seen = {}
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        if word:
            seen[word] = seen.get(word, 0) + 1
    ranked = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ranked[:count]]


def acronym(phrase):
    """The first letters, as capitals."""
    return "".join(word[0].upper() for word in phrase.replace("-", " ").split())

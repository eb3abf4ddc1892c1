def shift(text, by):
    """Each letter moved along the alphabet, round the end."""
    out = ""
    for char in text:
        if char.isalpha():
            base = ord("a") if char.islower() else ord("A")
            out += chr((ord(char) - base + by) % 26 + base)
        else:
            out += char
    return out

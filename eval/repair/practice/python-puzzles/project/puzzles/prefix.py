class Prefixes:
    """Words by their beginnings."""

    def __init__(self):
        self.root = {}

    def add(self, word):
        node = self.root
        for char in word:
            node = node.setdefault(char, {})
        node[None] = True

    def has(self, word):
        node = self.root
        for char in word:
            if char not in node:
                return False
            node = node[char]
        return None in node

    def starting(self, prefix):
        node = self.root
        for char in prefix:
            if char not in node:
                return []
            node = node[char]
        found = []
        stack = [(node, prefix)]
        while stack:
            node, text = stack.pop()
            for char, below in node.items():
                if char is None:
                    found.append(text)
                else:
                    stack.append((below, text + char))
        return sorted(found)

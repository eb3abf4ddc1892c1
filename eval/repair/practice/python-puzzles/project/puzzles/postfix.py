def evaluate(text):
    """The value of an expression in postfix notation."""
    stack = []
    for word in text.split():
        if word in ("+", "-", "*", "/"):
            right = stack.pop()
            left = stack.pop()
            if word == "+":
                stack.append(left + right)
            elif word == "-":
                stack.append(left - right)
            elif word == "*":
                stack.append(left * right)
            else:
                stack.append(left / right)
        else:
            stack.append(float(word))
    return stack.pop()

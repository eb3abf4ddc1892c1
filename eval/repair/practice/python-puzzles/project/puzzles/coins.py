def ways(amount, coins):
    """In how many ways coins make up an amount."""
    table = [0] * (amount + 1)
    table[0] = 1
    for coin in coins:
        for total in range(coin, amount + 1):
            table[total] += table[total - coin]
    return table[amount]

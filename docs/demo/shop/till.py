def pay(amount):  # TODO: cards
    return amount

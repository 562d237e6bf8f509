"""A shop: def nothing(): class Nothing:."""

import functools
from collections.abc import AsyncIterator, Callable

PRICES = {
    "apple": 1,
    "brace {": 2,
}

if len(PRICES) > 1:

    def total(items: list[str]) -> int:
        return sum(PRICES[item] for item in items)
else:

    def total(items: list[str]) -> int:
        return 0


double: Callable[[int], int] = lambda value: value * 2  # noqa: E731  def double():


# What is sold.
@functools.total_ordering
class Shop:
    """A class.

    def not_one(self):
    """

    class Item:
        name = "class Item:"

        def __init__(self, name: str) -> None:
            self.name = name
            # A last word

    owner = "nobody"

    @property
    def size(self) -> int:
        return 1

    @functools.partial(
        functools.partial,
        print,
    )
    def add(
        self,
        name: str,
        *,
        price: int = 0,
    ) -> str:
        def inner() -> str:
            return f"""
{name}
"""

        # def commented():
        return inner() + str(price) + self.owner

    async def items(self) -> AsyncIterator[int]:
        yield 1

    def __lt__(self, other: object) -> bool:
        return True


shop = Shop()

"""Random scalar expressions as text, by the kind of their value.

Numbers stay far from the limits of 64 bits: a product has two factors, and properties with extreme
values take part in comparisons only.
"""

from collections.abc import Callable
from random import Random

Fields = list[tuple[str, str]]
Constant = Callable[[str], str]

_EXTREME = (".age", ".big", ".double")
_PATTERNS = ["^a", "b$", "[ab]", "a|é", "^$", "x y"]


def expression(dice: Random, kind: str, fields: Fields, constant: Constant, condition: Callable[[], str]) -> str:
    """An expression of a kind: text, number or truth."""
    writer = _Writer(dice, fields, constant, condition)
    return {"text": writer.text, "number": writer.number, "truth": writer.truth}[kind]()


class _Writer:
    def __init__(self, dice: Random, fields: Fields, constant: Constant, condition: Callable[[], str]) -> None:
        self.dice, self.fields, self.constant, self.condition = dice, fields, constant, condition

    def place(self, *kinds: str) -> str | None:
        """A property of one of the kinds, if there is one."""
        fitting = [one for one, kind in self.fields if kind in kinds and not one.endswith(_EXTREME)]
        return self.dice.choice(fitting) if fitting else None

    def some_text(self) -> str:
        """A property or a constant."""
        return self.place("text") or self.constant("text")

    def small(self) -> str:
        """A small number that is no product."""
        literal = self.dice.choice(["0", "1", "2", "-1", "3", "0.5", "$number", "$real"])
        literal = self.constant(literal) if literal.startswith("$") else literal
        return (self.place("number") if self.dice.random() < 0.7 else None) or literal

    def factor(self) -> str:  # noqa: PLR0911 - one return per kind
        """A small number, perhaps of a function."""
        place = self.place("day", "moment")
        match self.dice.randint(0, 9):
            case 0:
                return f"length({self.place('text', 'texts', 'numbers') or self.some_text()})"
            case 1 if place is not None:
                return f"{self.dice.choice(['year', 'month', 'day'])}({place})"
            case 2 if (moment := self.place("moment")) is not None:
                return f"{self.dice.choice(['hour', 'minute', 'second'])}({moment})"
            case 3:
                return f"{self.dice.choice(['abs', 'floor', 'ceil', 'round'])}({self.small()})"
            case 4:
                return f"round({self.small()}, {self.dice.choice(['0', '1', '-1'])})"
            case 5:
                return f"coalesce({self.small()}, {self.small()}, 0)"
            case 6:
                number = self.small()
                return f"-({number})" if number.startswith("-") else f"(-{number})"
        return self.small()

    def product(self) -> str:
        """At most two factors."""
        if self.dice.random() < 0.5:
            return self.factor()
        return f"{self.factor()} {self.dice.choice('*/%')} {self.factor()}"

    def number(self) -> str:
        """A sum."""
        if self.dice.random() < 0.2:
            return self.case(self.factor)
        items = [self.product()]
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            item = self.product()
            items += [self.dice.choice("+-"), f"({item})" if self.dice.random() < 0.3 else item]
        return " ".join(items)

    def text(self) -> str:  # noqa: PLR0911 - one return per kind
        """A text made of texts."""
        match self.dice.randint(0, 6):
            case 0:
                return f"{self.dice.choice(['lower', 'upper'])}({self.some_text()})"
            case 1:
                return f"substring({self.some_text()}, {self.dice.choice(['1', '2'])}, {self.dice.choice('012')})"
            case 2:
                return f"substring({self.some_text()}, 2)"
            case 3:
                return f'replace({self.some_text()}, "a", {self.constant("text")})'
            case 4:
                return f"coalesce({self.some_text()}, {self.some_text()})"
            case 5:
                return self.case(self.some_text)
        return f"{self.some_text()} + {self.some_text()}"

    def truth(self) -> str:
        """A pattern that is found or not."""
        return f'matches({self.some_text()}, "{self.dice.choice(_PATTERNS)}")'

    def case(self, value: Callable[[], str]) -> str:
        """Values by condition."""
        branches = [f"when {self.condition()} then {value()}" for _ in range(self.dice.choice([1, 1, 2]))]
        default = self.dice.choice(["", f"else {value()} ", "else null "])
        return f"case {' '.join(branches)} {default}end"

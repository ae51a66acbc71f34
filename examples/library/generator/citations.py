"""Compute which paper cites which, without storing any citations.

Papers are numbered from the oldest to the newest. The topic and the references of a paper are
computed from numbers alone, so ten million citations need no more memory than ten. This module
uses no random source that has a state.
"""

from collections.abc import Iterator, Sequence

BLOCK = 32
MASK = (1 << 64) - 1
# The inverses of the odd numbers modulo BLOCK, which undo the shuffling of a block.
INVERSE = {odd: pow(odd, -1, BLOCK) for odd in range(1, BLOCK, 2)}


def scramble(number: int) -> int:
    """Return 64 random-looking bits that depend only on the number (the last step of splitmix64)."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return number ^ (number >> 31)


class Citations:
    """The citation graph of `papers` papers with exactly `total` citations.

    Every block of 32 papers contains the same mixture of topics in a different order. An older
    paper on the same topic can therefore be found with arithmetic.
    """

    def __init__(self, seed: int, papers: int, total: int, mixture: Sequence[int]) -> None:
        if len(mixture) != BLOCK:
            raise ValueError(f"a block has {BLOCK} papers")
        self.papers = papers
        self.total = total
        self.mixture = tuple(mixture)
        self.places = {
            topic: tuple(place for place in range(BLOCK) if mixture[place] == topic) for topic in set(mixture)
        }
        self.salt = scramble(seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019 & MASK)

    def shuffle(self, block: int) -> tuple[int, int]:
        """Return the odd factor and the shift that determine the order of the topics in a block."""
        bits = scramble(self.salt + block & MASK)
        return (bits & 15) * 2 + 1, bits >> 8 & BLOCK - 1

    def topic(self, paper: int) -> int:
        """Return the main topic of a paper."""
        factor, shift = self.shuffle(paper // BLOCK)
        return self.mixture[(paper - shift) * INVERSE[factor] & BLOCK - 1]

    def older(self, paper: int, bits: int) -> int:
        """Return an older paper, which in three out of four cases is on the same topic."""
        blocks = paper // BLOCK
        if not blocks or not bits & 48:
            return (bits >> 32) * paper >> 32
        places = self.places[self.topic(paper)]
        place = places[(bits >> 6 & 1023) * len(places) >> 10]
        block = (bits >> 32) * blocks >> 32
        factor, shift = self.shuffle(block)
        return block * BLOCK + (place * factor + shift & BLOCK - 1)

    def reference(self, paper: int, slot: int) -> int:
        """Return the paper that one of a paper's references cites.

        The reference cites either an older paper or a paper that the older paper cites. The second
        case is preferential attachment: frequently cited papers attract more citations and become hubs.
        """
        while True:
            bits = scramble(self.salt ^ paper * 0x9E3779B97F4A7C15 + slot * 0xC2B2AE3D27D4EB4F & MASK)
            paper, slot = self.older(paper, bits), bits & 7
            if paper < BLOCK or bits & 8:
                return paper

    def references(self, paper: int, count: int) -> list[int]:
        """Return `count` different older papers; `count` is at most the number of older papers."""
        found: dict[int, None] = {}
        for slot in range(3 * count + 16):
            if len(found) == count:
                return list(found)
            found[self.reference(paper, slot)] = None
        # Too few different papers were found, so fill the list with the newest uncited papers.
        spare = (other for other in range(paper - 1, -1, -1) if other not in found)
        return list(found) + [next(spare) for _ in range(count - len(found))]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield all citations as (citing, cited), from the oldest citing paper to the newest."""
        made, usual = 0, self.total // self.papers
        for paper in range(self.papers):
            due = self.total * (paper + 1) // self.papers
            if paper < self.papers - 1:
                due += scramble(self.salt + ~paper & MASK) % (usual + 1) - usual // 2
            count = max(0, min(due - made, paper))
            made += count
            for cited in self.references(paper, count):
                yield paper, cited

"""Who cites whom, without remembering anything.

Papers are numbered from the oldest to the newest. The topic of a paper and the paper behind each
of its references are computed from their numbers alone, so ten million citations need no more
memory than ten. Nothing here draws from a random source with a state.
"""

from collections.abc import Iterator, Sequence

BLOCK = 32
MASK = (1 << 64) - 1
# The inverses of the odd numbers modulo BLOCK: they undo the shuffling of a block.
INVERSE = {odd: pow(odd, -1, BLOCK) for odd in range(1, BLOCK, 2)}


def scramble(number: int) -> int:
    """64 bits that look random and depend on the number alone (the finish of splitmix64)."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return number ^ (number >> 31)


class Citations:
    """The citation graph of `papers` papers with exactly `total` citations.

    Every block of 32 papers holds the same mixture of topics in another order. That is what makes
    "some older paper about the same topic" a matter of arithmetic.
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
        """The odd factor and the shift that order the topics within a block."""
        bits = scramble(self.salt + block & MASK)
        return (bits & 15) * 2 + 1, bits >> 8 & BLOCK - 1

    def topic(self, paper: int) -> int:
        """The main topic of a paper."""
        factor, shift = self.shuffle(paper // BLOCK)
        return self.mixture[(paper - shift) * INVERSE[factor] & BLOCK - 1]

    def older(self, paper: int, bits: int) -> int:
        """Some older paper, three times out of four about the same topic."""
        blocks = paper // BLOCK
        if not blocks or not bits & 48:
            return (bits >> 32) * paper >> 32
        places = self.places[self.topic(paper)]
        place = places[(bits >> 6 & 1023) * len(places) >> 10]
        block = (bits >> 32) * blocks >> 32
        factor, shift = self.shuffle(block)
        return block * BLOCK + (place * factor + shift & BLOCK - 1)

    def reference(self, paper: int, slot: int) -> int:
        """The paper behind one reference of a paper.

        An author finds an older paper and cites it, or one of those that it cites. The second
        habit is preferential attachment: who is cited much is found often, and becomes a hub.
        """
        while True:
            bits = scramble(self.salt ^ paper * 0x9E3779B97F4A7C15 + slot * 0xC2B2AE3D27D4EB4F & MASK)
            paper, slot = self.older(paper, bits), bits & 7
            if paper < BLOCK or bits & 8:
                return paper

    def references(self, paper: int, count: int) -> list[int]:
        """`count` different older papers; `count` is at most the number of older papers."""
        found: dict[int, None] = {}
        for slot in range(3 * count + 16):
            if len(found) == count:
                return list(found)
            found[self.reference(paper, slot)] = None
        # So many of so few: the newest that are not cited yet fill the list.
        spare = (other for other in range(paper - 1, -1, -1) if other not in found)
        return list(found) + [next(spare) for _ in range(count - len(found))]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """All citations as (citing, cited), from the oldest citing paper to the newest."""
        made, usual = 0, self.total // self.papers
        for paper in range(self.papers):
            due = self.total * (paper + 1) // self.papers
            if paper < self.papers - 1:
                due += scramble(self.salt + ~paper & MASK) % (usual + 1) - usual // 2
            count = max(0, min(due - made, paper))
            made += count
            for cited in self.references(paper, count):
                yield paper, cited

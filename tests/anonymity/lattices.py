"""Full-domain generalisation by its definition, over all levels and row by row, and random small tables."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
from tests.anonymity import definitions

from sfumato.anonymity.goals import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchies import Cuts, Listed, Ranges, Tree

QUASI = ["age", "place", "group"]
HIERARCHIES = {
    "age": Ranges(width=2, levels=2),
    "place": Tree({"x": {"x1": ["a", "b"], "x2": ["c"]}, "y": ["d", "e"]}),
    "group": Listed([["p", "pq"], ["q", "pq"], ["r", "r"]]),
}
OTHER = {"age": Cuts([[1, 3], [3]]), "place": HIERARCHIES["place"]}  # and no hierarchy for "group"
GOALS = {
    "k1": [KAnonymity(1)],
    "k2": [KAnonymity(2)],
    "k3": [KAnonymity(3)],
    "distinct": [KAnonymity(2), DistinctDiversity("ill", 2)],
    "entropy": [EntropyDiversity("ill", 1.7)],
    "k and entropy": [KAnonymity(3), EntropyDiversity("ill", 2)],
    "recursive": [RecursiveDiversity("ill", c=2, l=2)],
    "ordered closeness": [KAnonymity(2), Closeness("ill", t=0.25)],
    "equal closeness": [Closeness("ill", t=0.3, distance="equal")],
    "all": [
        *(KAnonymity(2), DistinctDiversity("ill", 2), EntropyDiversity("ill", 1.5)),
        *(RecursiveDiversity("ill", c=3, l=2), Closeness("ill", t=0.5)),
    ],
}
LIMITS = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1)]


def random_table(seed, most=12):
    """A table of at most so many rows with nulls and ties."""
    r = np.random.default_rng(seed)
    n = int(r.integers(2, most + 1))

    def column(values):
        weights = r.dirichlet(np.ones(len(values)))
        return [values[i] for i in r.choice(len(values), n, p=weights)]

    ages = [*range(int(r.integers(2, 7))), None]
    return {
        "age": column(ages if r.integers(2) else ages[:-1]),
        "place": column(["a", "b", "c", "d", "e", None][: int(r.integers(3, 7))]),
        "group": column(["p", "q", "r"]),
        "ill": column([1, 2, 3][: int(r.integers(2, 4))]),
    }


class Definition:
    """All levels of a table, each with its classes, row by row."""

    def __init__(self, table, hierarchies):
        self.table, self.n = table, len(table["age"])
        self.cells = []
        for name in QUASI:
            values = list(dict.fromkeys(table[name]))
            if name in hierarchies:
                levels = hierarchies[name].levels_of(values)
                self.cells.append(
                    [
                        {
                            value: (levels.labels[i][code], Fraction(float(levels.losses[i][code])))
                            for value, code in zip(values, levels.codes[i].tolist(), strict=True)
                        }
                        for i in range(levels.height + 1)
                    ]
                )
            else:
                self.cells.append(
                    [{v: (v, Fraction(0)) for v in values}, {v: ("*", Fraction(1)) for v in values}]
                )
        self.nodes = list(product(*(range(len(column)) for column in self.cells)))
        self.known = {}
        self.whole = Counter(table["ill"])
        self.values = sorted(self.whole)
        self.found = {node: self._classes(node) for node in self.nodes}

    def _classes(self, node):
        classes = {}
        for row in range(self.n):
            cells = [
                column[level][self.table[name][row]]
                for column, level, name in zip(self.cells, node, QUASI, strict=True)
            ]
            key = tuple(label for label, _ in cells)
            loss = sum(lost for _, lost in cells)
            rows, _ = classes.setdefault(key, ([], loss))
            rows.append(row)
        return [
            (rows, loss, [Counter(self.table["ill"][row] for row in rows)[value] for value in self.values])
            for rows, loss in classes.values()
        ]

    def met(self, goal, rows, counts):
        total = [self.whole[value] for value in self.values]
        if isinstance(goal, KAnonymity):
            return len(rows) >= goal.k
        if isinstance(goal, DistinctDiversity):
            return definitions.distinct(counts) >= goal.l
        if isinstance(goal, EntropyDiversity):
            return definitions.entropy_met(counts, goal.l)
        if isinstance(goal, RecursiveDiversity):
            return definitions.recursive_met(counts, goal.c, goal.l)
        distance = definitions.equal_distance if goal.distance == "equal" else definitions.ordered_distance
        return distance(counts, total) <= goal.t

    def judged(self, node, goals):
        """Suppressed rows, loss and discernibility of levels."""
        lost, square, kept = Fraction(0), 0, 0
        for rows, loss, counts in self.found[node]:
            if all(self.met(goal, rows, counts) for goal in goals):
                lost, square, kept = lost + len(rows) * loss, square + len(rows) ** 2, kept + len(rows)
        gone = self.n - kept
        return gone, (lost + gone * len(QUASI)) / (self.n * len(QUASI)), square + self.n * gone

    def serving(self, goals, limit):
        """All levels that serve, with what they lose."""
        if tuple(goals) not in self.known:
            self.known[tuple(goals)] = {node: self.judged(node, goals) for node in self.nodes}
        judged = self.known[tuple(goals)]
        return {node: one for node, one in judged.items() if one[0] <= limit * self.n and one[0] < self.n}

    def best(self, goals, limit, metric):
        """The best levels by the metric; None if none serve."""
        keys = []
        for node, (gone, loss, square) in self.serving(goals, limit).items():
            near = round(float(loss), 10)
            value = {"loss": near, "discernibility": square, "height": sum(node)}[metric]
            keys.append((value, near, gone, node))
        return min(keys)[-1] if keys else None

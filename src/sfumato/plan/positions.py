"""On which line of a TOML file each key stands; tomllib reads the values, and tells no lines."""

import re
from bisect import bisect_right

from sfumato.plan.problems import Place

MOST_DEPTH = 16

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
# The closing quotes may follow one or two quotes that belong to the text.
_LONG_BASIC = re.compile(r'"""(?:[^\\"]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL)


class TooDeep(ValueError):
    """Tables or lists inside each other beyond any plan; `line` says where."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def positions(text: str) -> dict[Place, int]:
    """The line, from 1, of every key, table and list item of a text that tomllib accepts.

    >>> positions('a = 1\\n[b]\\nc = [1,\\n 2]')
    {('a',): 1, ('b',): 2, ('b', 'c'): 3, ('b', 'c', 0): 3, ('b', 'c', 1): 4}
    """
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """A walk over the text from key to key."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._found: dict[Place, int] = {}
        # How many tables each list of tables has so far.
        self._tables: dict[Place, int] = {}

    def scan(self) -> dict[Place, int]:
        table: Place = ()
        while self._skip():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._found

    def _skip(self) -> bool:
        self._at = self._match(_SPACE).end()
        return self._at < len(self._text)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:  # tomllib accepted the text, so this would be a mistake here
            raise ValueError(f"line {self._line()} of the plan is not understood")
        return found

    def _line(self) -> int:
        return bisect_right(self._ends, self._at - 1) + 1

    def _note(self, place: Place) -> None:
        if len(place) > MOST_DEPTH:
            raise TooDeep(self._line())
        self._found.setdefault(place, self._line())

    def _header(self) -> Place:
        several = self._text.startswith("[[", self._at)
        line = self._at
        self._at += 2 if several else 1
        parts = self._key()
        self._at += 2 if several else 1
        after, self._at = self._at, line
        place: Place = ()
        for index, part in enumerate(parts):
            place = (*place, part)
            self._note(place)
            if several and index == len(parts) - 1:
                self._tables[place] = self._tables.get(place, 0) + 1
            if place in self._tables:
                place = (*place, self._tables[place] - 1)
                self._note(place)
        self._at = after
        return place

    def _key(self) -> tuple[str, ...]:
        parts = []
        while True:
            self._skip()
            parts.append(self._key_part())
            self._skip()
            if self._text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _key_part(self) -> str:
        quote = self._text[self._at]
        if quote == '"':
            found = self._match(_BASIC)
            self._at = found.end()
            return _unescaped(found.group())
        found = self._match(_LITERAL if quote == "'" else _BARE_KEY)
        self._at = found.end()
        return found.group(1) if quote == "'" else found.group()

    def _pair(self, table: Place) -> None:
        start = self._at
        parts = self._key()
        self._at, equals = start, self._at
        place = table
        for part in parts:
            place = (*place, part)
            self._note(place)
        self._at = equals + 1
        self._skip()
        self._value(place)

    def _value(self, place: Place) -> None:
        first = self._text[self._at]
        if first == "[":
            self._list(place)
        elif first == "{":
            self._inline(place)
        elif first == '"':
            long = self._text.startswith('"""', self._at)
            self._at = self._match(_LONG_BASIC if long else _BASIC).end()
        elif first == "'":
            long = self._text.startswith("'''", self._at)
            self._at = self._match(_LONG_LITERAL if long else _LITERAL).end()
        else:
            self._at = self._match(_SCALAR).end()

    def _list(self, place: Place) -> None:
        self._at += 1
        index = 0
        while self._skip() and self._text[self._at] != "]":
            item = (*place, index)
            self._note(item)
            self._value(item)
            index += 1
            self._skip()
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1

    def _inline(self, place: Place) -> None:
        self._at += 1
        while self._skip() and self._text[self._at] != "}":
            self._pair(place)
            self._skip()
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1


def _unescaped(quoted: str) -> str:
    import tomllib

    (name,) = tomllib.loads(f"{quoted} = 0")
    return name

"""Positions in the payloads of many records, which are read at once: a number, a size or some bytes of each, with NumPy.

A payload whose bytes are not those that Avro's writers produce is left to the reader of single payloads (avro_reading.py): `ok` is then false.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# Before and after all payloads, so that eight bytes can be read anywhere.
PADDING = bytes(16)
WORD_BYTES, INT_BYTES = 8, 5
# The eight bytes of a word, without and with only the highest bit of each: whether another byte follows.
DIGITS, FOLLOWED = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
# Joins groups of 7, 14 and 28 bits: those that stay, those that move, by how far.
JOINS = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)
ONE, SEVEN, SIGN = np.uint64(1), np.uint64(0x7F), np.uint64(63)


@dataclass
class Cursor:
    """A position in each of several payloads.

    data: all payloads, between PADDING. words: its eight bytes from each position, little-endian. pos, end: of each payload, in `data`.
    ok: whether what was read so far is a value; if not, nothing that is read later has a meaning.
    """

    data: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint64]
    pos: Longs
    end: Longs
    ok: Flags

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "Cursor":
        """Return the positions of the first bytes of payloads, which have less than 2 GiB together."""
        data = np.frombuffer(b"".join((PADDING, *values, PADDING)), np.uint8)
        words: npt.NDArray[np.uint64] = np.ndarray(
            len(data) - WORD_BYTES + 1, dtype="<u8", buffer=data, strides=(1,)
        )
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        end = np.cumsum(sizes) + len(PADDING)
        return cls(data, words, end - sizes, end, np.ones(len(values), np.bool_))

    def __len__(self) -> int:
        """Return how many payloads there are."""
        return len(self.pos)

    def part(self, rows: npt.NDArray[Any]) -> "Cursor":
        """Return the positions in some of the payloads."""
        return Cursor(self.data, self.words, self.pos[rows], self.end[rows], self.ok[rows])

    def advance(self, rows: npt.NDArray[Any], part: "Cursor") -> None:
        """Take the positions of some of the payloads from their part."""
        self.pos[rows], self.ok[rows] = part.pos, part.ok

    def require(self, valid: Flags) -> None:
        """Give up the payloads for which a condition does not hold."""
        self.ok &= valid

    def skip(self, sizes: Longs | int) -> Longs:
        """Return the current positions, and go on by as many bytes, which are not negative; gives up where the payload has fewer."""
        start = self.pos
        self.require(sizes <= self.end - start)
        self.pos = np.minimum(start + np.where(self.ok, sizes, 0), self.end)
        return start

    def word(self, size: int) -> npt.NDArray[np.uint64]:
        """Return the next bytes, at most eight, as a number; bits beyond them have no meaning."""
        return self.words[self.skip(size)]

    def long(self) -> Longs:
        """Return the next long."""
        start = self.pos
        word = self.words[start]
        # The lowest bit that says that a byte is the last one; 0: it is none of the eight.
        last = ~word & FOLLOWED
        last &= ~last + ONE
        # All bits up to it. Of 0: all bits.
        number = word & DIGITS & (last - ONE)
        for staying, moving, by in JOINS:
            number = number & staying | (number & moving) >> by
        sizes = np.bitwise_count((last - ONE) & FOLLOWED).astype(np.int64) + 1
        long = np.flatnonzero(last == 0)
        if len(long):
            ninth, tenth = (
                self.data[start[long] + i].astype(np.uint64) for i in (WORD_BYTES, WORD_BYTES + 1)
            )
            number[long] |= (ninth & SEVEN) << np.uint64(56)
            is_tenth = ninth > SEVEN
            number[long] |= np.where(is_tenth, tenth << SIGN, 0)
            sizes[long] = WORD_BYTES + 1 + is_tenth
            self.ok[long] &= ~(is_tenth & (tenth > SEVEN))
        self.skip(sizes)
        return (number >> ONE).astype(np.int64) ^ -(number & ONE).astype(np.int64)

    def int(self) -> Longs:
        """Return the next int; gives up where it has more than five bytes, or 32 bits."""
        start = self.pos
        value = self.long()
        self.require((self.pos - start <= INT_BYTES) & (value == value.astype(np.int32)))
        return value

    def sizes(self) -> Longs:
        """Return the next sizes in bytes: 0 where the payload does not have as many."""
        sizes = self.long()
        self.require((sizes >= 0) & (sizes <= self.end - self.pos))
        return np.where(self.ok, sizes, 0)

    def slices(self, start: Longs, sizes: Longs) -> pa.Array:
        """Return bytes of each payload, from these positions on, as Arrow's binary."""
        # A slice and the bytes up to the next one, by turns.
        bounds = np.empty(2 * len(start) + 1, np.int32)
        bounds[0:-1:2], bounds[1::2], bounds[-1] = start, start + sizes, len(self.data)
        both = pa.Array.from_buffers(
            pa.binary(), 2 * len(start), [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        )
        return both.take(pa.array(np.arange(0, 2 * len(start), 2)))

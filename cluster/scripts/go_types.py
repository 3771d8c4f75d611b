"""Reads the types of a Go program from what it keeps for reflection: their fields with tags.

Go's linker leaves a description of every type that a program may look at in `.rodata`, even in stripped binaries. The
layout is that of `internal/abi/type.go`; it holds for programs of 64 bits that are linked to fixed addresses.
"""

import struct
from dataclasses import dataclass
from functools import cached_property

POINTER, SLICE, STRUCT, MAP = 22, 23, 25, 21
HEADER = 48  # of every type; what its kind adds comes behind
EXTRA_STAR = 2  # the flag of a type whose name is kept with a star before it


@dataclass
class Field:
    name: str
    tag: str
    type: "Type"


class Program:
    def __init__(self, data):
        self.data = data
        self.sections = dict(self._sections())
        self.base = self.sections[".rodata"][0]

    def _sections(self):
        (offset,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", self.data, offset + at * size) for at in range(count)]
        text = headers[names][4]
        for name, _, _, address, start, length in headers:
            end = self.data.index(b"\0", text + name)
            yield self.data[text + name:end].decode(), (address, start, length)

    def at(self, address, form):
        start, offset, length = self.sections[".rodata"]
        if not start <= address < start + length:
            raise ValueError(f"{address:#x} is not in .rodata")
        return struct.unpack_from("<" + form, self.data, address - start + offset)

    def text(self, address):
        """A text with its length before it, and the address behind it."""
        length, shift = 0, 0
        while True:
            (byte,) = self.at(address, "B")
            address += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return self.at(address, f"{length}s")[0].decode(), address + length

    def types(self):
        """The types that are found at run time, which lead to all others."""
        _, offset, length = self.sections[".typelink"]
        for (link,) in struct.iter_unpack("<i", self.data[offset:offset + length]):
            yield Type(self, self.base + link)


class Type:
    def __init__(self, program, address):
        self.program = program
        self.address = address
        self.flags, self.kind = program.at(address + 20, "BxxB")
        self.kind &= 31

    @cached_property
    def name(self):
        (offset,) = self.program.at(self.address + 40, "i")
        name, _ = self.program.text(self.program.base + offset + 1)
        return name[1:] if self.flags & EXTRA_STAR else name

    @cached_property
    def package(self):
        if not self.flags & 1:
            return ""
        extra = {POINTER: 8, SLICE: 8, STRUCT: 32}.get(self.kind)
        if extra is None:
            return ""
        (offset,) = self.program.at(self.address + HEADER + extra, "i")
        return self.program.text(self.program.base + offset + 1)[0] if offset else ""

    @property
    def element(self):
        """What a pointer points to, or a list is of."""
        return Type(self.program, self.program.at(self.address + HEADER, "Q")[0])

    def fields(self):
        start, count = self.program.at(self.address + HEADER + 8, "QQ")
        for at in range(count):
            name, type_ = self.program.at(start + at * 24, "QQ")
            (flags,) = self.program.at(name, "B")
            text, behind = self.program.text(name + 1)
            tag = self.program.text(behind)[0] if flags & 2 else ""
            yield Field(text, tag, Type(self.program, type_))

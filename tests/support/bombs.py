"""Files of a hostile author that are small to make, but large to read: archives, documents, notebooks and texts.

Each function writes one bomb and returns its path. `peak()` calls a function in a process of its own, and returns how
much memory it and its child processes had, how long it took, and which threads and processes it left.
"""

import gzip
import json
import os
import struct
import subprocess
import sys
import tarfile
import textwrap
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MIB = 1 << 20


def zip_directory(path: Path, entries: int, name: bytes = b"x") -> Path:
    """Write a zip whose central directory has many entries of one member."""
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0) + name
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0) + name
    size = entries * len(entry)
    count = min(entries, 0xFFFF)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, len(local), 0)
    with path.open("wb") as file:
        file.write(local)
        for _ in range(entries // 1000):
            file.write(entry * 1000)
        file.write(entry * (entries % 1000))
        file.write(end)
    return path


def zip_false_directory(path: Path, size: int) -> Path:
    """Write a sparse file that ends as a zip with a central directory of `size` bytes."""
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0))
    return path


def zip_overlapping(path: Path, members: int, size: int) -> Path:
    """Write a zip whose members all share one compressed text of zeros (Fifield, 'A better zip bomb', 2019)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(bytes(size)) + deflate.flush()
    crc = zlib.crc32(bytes(size))
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(packed), size, 1, 0) + b"x"
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, len(packed), size, 1, 0, 0, 0, 0, 0, 0) + b"x"
        for _ in range(members)
    )
    start = len(local) + len(packed)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, members, members, len(directory), start, 0)
    path.write_bytes(local + packed + directory + end)
    return path


def zip_zeros(path: Path, size: int, *, depth: int = 1, beside: bytes = b"") -> Path:
    """Write a zip with a member of zeros, in `depth` archives; `beside` is a member that does not compress."""
    inner: Path | None = None
    for level in range(depth, 0, -1):
        at = path if level == 1 else path.with_name(f".{path.name}.{level}")
        with zipfile.ZipFile(at, "w", zipfile.ZIP_DEFLATED) as archive:
            if inner is None:
                with archive.open("zeros", "w", force_zip64=True) as member:
                    _zeros(member, size)
            else:
                archive.write(inner, "inner.zip")
                inner.unlink()
            if beside:
                archive.writestr("beside", beside)
        inner = at
    return path


def _zeros(file: IO[bytes] | gzip.GzipFile, size: int) -> None:
    for _ in range(size // MIB):
        file.write(bytes(MIB))
    file.write(bytes(size % MIB))


def gz_zeros(path: Path, size: int) -> Path:
    """Write a gzip file of zeros."""
    with gzip.open(path, "wb") as file:
        _zeros(file, size)
    return path


def gz_members(path: Path, members: int) -> Path:
    """Write a gzip file of many empty members, which take time and yield nothing."""
    path.write_bytes(gzip.compress(b"") * members)
    return path


def gz_name(path: Path, size: int) -> Path:
    """Write a gzip file whose header has a name of `size` bytes, which Python reads byte by byte."""
    with path.open("wb") as file:
        file.write(b"\x1f\x8b\x08\x08\0\0\0\0\0\xff")
        for _ in range(size // MIB):
            file.write(b"a" * MIB)
        file.write(b"\0\3\0\0\0\0\0\0\0\0\0")
    return path


def xz_dictionary(path: Path, size: int) -> Path:
    """Write an `.lzma` file of zeros with a dictionary of 1.5 GiB."""
    import lzma

    content = lzma.compress(bytes(size), format=lzma.FORMAT_ALONE)
    path.write_bytes(content[:1] + struct.pack("<I", 3 << 29) + content[5:])
    return path


def tar_folders(path: Path, folders: int) -> Path:
    """Write a `.tar.gz` with many headers of directories, which are no members to search."""
    info = tarfile.TarInfo("d")
    info.type = tarfile.DIRTYPE
    header = info.tobuf(tarfile.USTAR_FORMAT)
    with gzip.open(path, "wb", 1) as file:
        for _ in range(folders // 1000):
            file.write(header * 1000)
        file.write(header * (folders % 1000) + bytes(1024))
    return path


def tar_pax(path: Path, members: int, size: int, *, everywhere: bool = False) -> Path:
    """Write a `.tar.gz` of members with PAX headers of `size` bytes: names or, with `everywhere`, global headers."""
    with gzip.open(path, "wb", 1) as file:
        for number in range(members):
            info = tarfile.TarInfo(f"{number:08}")
            text = "a" * size
            if everywhere:
                file.write(tarfile.TarInfo.create_pax_global_header({f"k{number}": text}))
            else:
                info.pax_headers = {"path": f"{text}{number:08}"}
            file.write(info.tobuf(tarfile.PAX_FORMAT))
        file.write(bytes(1024))
    return path


def notebook(path: Path, cells: int, source: str = "[]") -> Path:
    """Write a notebook of many cells."""
    cell = f'{{"cell_type":"code","source":{source}}},'
    with path.open("w") as file:
        file.write('{"cells":[')
        for _ in range(cells // 1000):
            file.write(cell * 1000)
        file.write('{}],"nbformat":4,"metadata":{}}')
    return path


def notebook_lists(path: Path, size: int) -> Path:
    """Write a notebook whose metadata are `size` bytes of empty lists, each of which takes 56 bytes in Python."""
    with path.open("w") as file:
        file.write('{"cells":[],"metadata":[')
        for _ in range(size // MIB):
            file.write("[]," * (MIB // 3))
        file.write("0]}")
    return path


_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="{type}"/></Types>"""
_RELATIONS = """<?xml version="1.0"?><Relationships
xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Target="{target}"
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"/>{more}</Relationships>"""
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def docx(path: Path, body: str, doctype: str = "") -> Path:
    """Write a text document with this XML in its body."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES.format(type=kind))
        archive.writestr("_rels/.rels", _RELATIONS.format(kind="officeDocument", target="word/document.xml", more=""))
        archive.writestr(
            "word/document.xml",
            f'<?xml version="1.0"?>{doctype}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        )
    return path


def docx_laughs(path: Path) -> Path:
    """Write a text document with the 'billion laughs'."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return docx(path, "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", f'<!DOCTYPE w:document [<!ENTITY l0 "lol">{entities}]>')


def docx_paragraphs(path: Path, paragraphs: int) -> Path:
    """Write a text document of many paragraphs."""
    return docx(path, "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * paragraphs)


def docx_deep(path: Path, depth: int) -> Path:
    """Write a text document of nested tables."""
    return docx(path, "<w:tbl><w:tr><w:tc>" * depth + "<w:p/>" + "</w:tc></w:tr></w:tbl>" * depth)


def xlsx(path: Path, sheet: str, strings: str = "") -> Path:
    """Write a spreadsheet with this XML in its only sheet."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES.format(type="application/xml"))
        archive.writestr("_rels/.rels", _RELATIONS.format(kind="officeDocument", target="xl/workbook.xml", more=""))
        relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        more = f'<Relationship Id="rId2" Type="{relation}/sharedStrings" Target="sharedStrings.xml"/>'
        archive.writestr(
            "xl/_rels/workbook.xml.rels", _RELATIONS.format(kind="worksheet", target="worksheets/sheet1.xml", more=more)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_SHEET}" xmlns:r="{relation}"><sheets><sheet name="s" sheetId="1" r:id="rId1"/>'
            "</sheets></workbook>",
        )
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{_SHEET}">{strings}</sst>')
        archive.writestr("xl/worksheets/sheet1.xml", f'<worksheet xmlns="{_SHEET}">{sheet}</worksheet>')
    return path


def xlsx_corners(path: Path) -> Path:
    """Write a spreadsheet with two cells in opposite corners, which has 17 billion cells."""
    cells = "".join(
        f'<row r="{row}"><c r="{name}" t="str"><v>x</v></c></row>' for row, name in ((1, "A1"), (1048576, "XFD1048576"))
    )
    return xlsx(path, f'<dimension ref="A1:XFD1048576"/><sheetData>{cells}</sheetData>')


def xlsx_strings(path: Path, size: int, cells: int) -> Path:
    """Write a spreadsheet whose cells all have one long shared string."""
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, cells + 1))
    return xlsx(path, f"<sheetData>{rows}</sheetData>", f"<si><t>{'a' * size}</t></si>")


def sparse(path: Path, size: int) -> Path:
    """Write a sparse file of zeros."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def one_line(path: Path, size: int, start: str = "", end: str = "") -> Path:
    """Write a text of one line."""
    with path.open("w") as file:
        file.write(start)
        for _ in range(size // MIB):
            file.write("a" * MIB)
        file.write(end)
    return path


def newlines(path: Path, size: int) -> Path:
    """Write a text of empty lines."""
    with path.open("w") as file:
        for _ in range(size // MIB):
            file.write("\n" * MIB)
    return path


def deep_code(path: Path, depth: int) -> Path:
    """Write a source of nested brackets."""
    path.write_text(f"x = {'(' * depth}1{')' * depth}\n")
    return path


def tiny_files(folder: Path, count: int) -> Path:
    """Write many small files."""
    for number in range(count):
        if number % 1000 == 0:
            (folder / str(number)).mkdir(parents=True)
        (folder / str(number - number % 1000) / f"{number}.py").write_text("x = 1\n")
    return folder


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call cost.

    Attributes:
        result: What the call printed.
        own: Peak of the memory of its process in MiB, without what the process had before the call.
        child: Peak of the memory of its largest child process in MiB.
        seconds: Time that it took.
        threads: Names of the threads that it left, a second after it has ended.
        children: Programs of the child processes that it left.
    """

    result: str
    own: int
    child: int
    seconds: float
    threads: list[str]
    children: list[str]


_MEASURE = """
import json, os, sys, threading, time
def children(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            for child in open(f"/proc/{pid}/task/{task}/children").read().split():
                yield int(child)
                yield from children(int(child))
        except OSError:
            pass
def memory(pid, field):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith(field):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0
peak = 0
own = 0
ended = threading.Event()
def watch():
    global peak, own
    while not ended.wait(0.005):
        own = max(own, memory(os.getpid(), "RssAnon"))
        peak = max([peak, *(memory(child, "RssAnon") for child in children(os.getpid()))])
def call():
{code}
import ripwrap, ripwrap.sync
warm()
watching = threading.Thread(target=watch, name="watch", daemon=True)
before = memory(os.getpid(), "RssAnon")
watching.start()
begun = time.monotonic()
try:
    result = call()
except BaseException as error:
    result = f"{type(error).__name__}: {error}"
seconds = time.monotonic() - begun
end = time.monotonic() + 1.0
def left():
    return [t.name for t in threading.enumerate() if t is not threading.main_thread() and t.name not in ("watch",)]
def programs():
    found = []
    for child in children(os.getpid()):
        try:
            found.append(open(f"/proc/{child}/comm").read().strip())
        except OSError:
            pass
    return found
while (left() or programs()) and time.monotonic() < end:
    time.sleep(0.02)
threads, processes = left(), programs()
ended.set()
watching.join()
print("\\n" + json.dumps([str(result)[:20000], own - before, peak, seconds, threads, processes]))
"""


def peak(code: str, *, warm: str = "pass", limit: int = 3 << 30, timeout: float = 120) -> Cost:
    """Run the body of a function in a new Python, and return its cost (Linux).

    Args:
        code: Lines of Python that end in a `return`.
        warm: Lines of Python that run before the memory is measured, such as imports.
        limit: Maximum address space of the process in bytes, so that a bomb ends only this process.
        timeout: Seconds after which the process is killed, with an error.
    """
    body = textwrap.indent(textwrap.dedent(code), "    ")
    warming = f"def warm():\n{textwrap.indent(textwrap.dedent(warm), '    ')}\n"
    script = warming + _MEASURE.replace("{code}", body)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n" + script
    done = subprocess.run(
        [sys.executable, "-c", limited],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ},
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    return Cost(*json.loads(done.stdout.splitlines()[-1]))

"""Files as they are: text, markdown and PDF are read, everything else is refused with a sentence."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from pdfs import encrypted, make_pdf
from vaults import refused

from quaid.capture.files import source_file
from quaid.capture.files.analyzer import FileReader, split_file
from quaid.capture.files.source_file import PART_CHARS, read_file
from quaid.capture.files.source_note import AnalysisRequest
from quaid.errors import BadInputError

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def put(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_markdown_file_is_read_by_heading(tmp_path):
    text = "---\ntitle: The lease\n---\n# Flat\n\nRent is **900**.\n\n## Deadlines\n\n- notice: March\n\n```\n# no heading\n```\n"
    found = read_file(put(tmp_path, "lease.md", text))
    assert (found.media, found.title, found.pages, found.size) == ("text/markdown", "The lease", None, len(text))
    assert found.checksum == hashlib.sha256(text.encode()).hexdigest()
    assert found.parts == (("Flat", "Rent is 900."), ("Flat > Deadlines", "notice: March\n\n# no heading"))


def test_the_first_heading_is_the_title_of_markdown_that_names_none(tmp_path):
    assert read_file(put(tmp_path, "a.md", "intro\n\n# The lease\n\nwords\n")).title == "The lease"
    assert read_file(put(tmp_path, "a.md", "only words\n")).title is None


@pytest.mark.parametrize(("name", "data", "media"), [
    ("a.txt", "Rent is 900 €.", "text/plain"),
    ("a.py", "rent = 900  # €", "text/x-python"),
    ("README", "Rent is 900 €.", "text/plain"),
    ("a.json", '{"rent": "900 €"}', "text/plain"),
    ("bom.txt", b"\xef\xbb\xbfRent is 900 \xe2\x82\xac.", "text/plain"),
    ("utf16.txt", "Rent is 900 €.".encode("utf-16"), "text/plain"),
])  # fmt: skip
def test_text_is_read_whatever_its_name_and_encoding(tmp_path, name, data, media):
    found = read_file(put(tmp_path, name, data))
    assert (found.media, found.remarks) == (media, ())
    assert "€" in found.parts[0][1]
    assert found.parts[0][0] == ""


def test_another_encoding_is_read_and_said(tmp_path):
    found = read_file(put(tmp_path, "old.txt", "Kündigung am Ersten".encode("cp1252")))
    assert found.parts[0][1] == "Kündigung am Ersten"
    assert "not UTF-8" in found.remarks[0]


def test_a_pdf_is_read_by_page(tmp_path):
    data = make_pdf("The lease\nRent is 900.", "", "Notice: March", title="Lease of the flat")
    found = read_file(put(tmp_path, "scan.bin", data))
    assert (found.media, found.pages, found.title) == ("application/pdf", 3, "Lease of the flat")
    assert found.parts == (("page 1", "The lease\nRent is 900."), ("page 3", "Notice: March"))
    assert found.remarks == (f"{tmp_path / 'scan.bin'}: 1 of 3 pages hold no text, pictures perhaps.",)


def test_a_pdf_that_only_forbids_printing_is_read(tmp_path):
    assert read_file(put(tmp_path, "a.pdf", encrypted(make_pdf("Rent is 900."), ""))).parts[0][1] == "Rent is 900."


@pytest.mark.parametrize(("name", "data", "said"), [
    ("empty.txt", b"", "is empty"),
    ("blank.md", b" \n\n", "is empty"),
    ("comment.md", b"<!-- nothing to see -->\n", "holds no text"),
    ("app.bin", bytes(range(256)) * 4, "not a text, markdown, PDF"),
    ("letter.odt", b"PK\x03\x04 and so on, which may even look like text", "office document"),
    ("letter.docx", b"PK\x03\x04 and so on, which may even look like text", "save it anew"),
    ("scanned.pdf", make_pdf("", ""), "pictures of its 2 pages"),
    ("broken.pdf", b"%PDF-1.7\nthis is not what it says", "damaged PDF"),
    ("cut.pdf", make_pdf("Rent is 900.")[:200], "damaged PDF"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(tmp_path, name, data, said):
    path = put(tmp_path, name, data)
    error = refused(lambda: read_file(path), BadInputError)
    assert said in str(error)
    assert str(path) in str(error)


def test_an_encrypted_pdf_is_refused(tmp_path):
    path = put(tmp_path, "a.pdf", encrypted(make_pdf("Rent is 900."), "secret"))
    assert "is encrypted" in str(refused(lambda: read_file(path), BadInputError))


def test_folders_pipes_and_what_is_not_there_are_refused(tmp_path):
    assert "is a folder" in str(refused(lambda: read_file(tmp_path), BadInputError))
    assert "does not exist" in str(refused(lambda: read_file(tmp_path / "gone.md"), BadInputError))
    assert "cannot be read" in str(refused(lambda: read_file(tmp_path / "a\0b"), BadInputError))
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(refused(lambda: read_file(tmp_path / "pipe"), BadInputError))


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = put(tmp_path, "big.txt", "word " * 100)
    monkeypatch.setattr(source_file, "MAX_CHARS", 200)
    assert "characters of text" in str(refused(lambda: read_file(path), BadInputError))
    monkeypatch.setattr(source_file, "MAX_BYTES", 200)
    assert "MB are read" in str(refused(lambda: read_file(path), BadInputError))


def test_secrets_are_gone_before_the_text_is_taken_apart(tmp_path):
    text = f"# Access\n\nThe token of the build is {KEY}.\n\n<private>my own affair</private>\n"
    found = read_file(put(tmp_path, "a.md", text))
    assert found.redacted
    assert "[redacted: " in found.parts[0][1]
    assert KEY not in str(found.parts)
    assert "affair" not in str(found.parts)
    pdf = read_file(put(tmp_path, "a.pdf", make_pdf("first", f"The token of the build is {KEY}.")))
    assert pdf.redacted
    assert KEY not in str(pdf.parts)


PAGE = (
    "<html><head><title>Lease</title><style>p {color: red}</style><script>steal()</script></head>"
    "<body><h1>The lease</h1><p>Rent is <b>900</b>.</p><h2>Deadlines</h2><p>Notice: March</p></body></html>"
)
WORD = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:pPr>'
    '<w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>The lease</w:t></w:r></w:p><w:p><w:r><w:t>Rent is 900.</w:t></w:r>'
    "</w:p></w:body></w:document>"
)
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
PARTS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def zipped(**parts: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return packed.getvalue()


def make_docx() -> bytes:
    return zipped(**{
        "[Content_Types].xml": f'<Types xmlns="{TYPES}"><Default Extension="xml" ContentType="application/vnd.openxmlformats-'
        'officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{PARTS}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": WORD,
    })  # fmt: skip


def make_epub() -> bytes:
    container = '<rootfiles><rootfile full-path="book.opf"/></rootfiles>'
    return zipped(**{
        "META-INF/container.xml": f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{container}</container>',
        "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<dc:title>The lease</dc:title></metadata><manifest><item id="a" href="a.xhtml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "a.xhtml": PAGE,
    })  # fmt: skip


def make_xlsx() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, packed = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["Rent", "is 900."])
    book.save(packed)
    return packed.getvalue()


def make_pptx() -> bytes:
    pptx = pytest.importorskip("pptx")
    show, packed = pptx.Presentation(), io.BytesIO()
    slide = show.slides.add_slide(show.slide_layouts[0])
    slide.shapes.title.text = "The lease"
    slide.placeholders[1].text = "Rent is 900."
    show.save(packed)
    return packed.getvalue()


@pytest.mark.parametrize("make", [make_docx, make_epub, make_xlsx, make_pptx])
def test_an_office_file_or_a_book_is_read_by_its_headings(tmp_path, make):
    pytest.importorskip("markitdown")
    found = read_file(put(tmp_path, f"lease.{make.__name__.removeprefix('make_')}", make()))
    assert "900." in "".join(text for _, text in found.parts)
    if make is not make_xlsx:
        assert "The lease" in f"{found.title} {found.parts}"


def test_a_web_page_is_read_as_a_browser_shows_it(tmp_path):
    pytest.importorskip("markitdown")
    found = read_file(put(tmp_path, "lease.html", PAGE))
    assert found.parts == (("The lease", "Rent is 900."), ("The lease > Deadlines", "Notice: March"))
    assert (found.media, found.title, found.remarks) == ("text/html", "The lease", ())


def test_without_the_extra_a_page_is_read_with_its_tags_and_an_office_file_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "markitdown", None)
    found = read_file(put(tmp_path, "lease.html", PAGE))
    assert "<b>900</b>" in found.parts[0][1]
    assert "quaid[office]" in found.remarks[0]
    assert "quaid[office]" in str(refused(lambda: read_file(put(tmp_path, "a.docx", make_docx())), BadInputError))


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("markitdown")
    monkeypatch.setattr(source_file, "MAX_UNPACKED_BYTES", 1000)
    path = put(tmp_path, "a.docx", zipped(bomb="0" * 10_000))
    assert "unpacks to" in str(refused(lambda: read_file(path), BadInputError))


@settings(max_examples=examples(60))
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = put(tmp_path_factory.getbasetemp(), "any.md", data)
    try:
        found = read_file(path)
    except BadInputError:
        return
    assert all(text.strip() for _, text in found.parts)


@settings(max_examples=examples(40))
@given(st.binary(max_size=40), st.integers(0, 600))
def test_a_damaged_pdf_is_read_or_refused(tmp_path_factory, noise, place):
    data = make_pdf("Rent is 900.", "Notice: March")
    path = put(tmp_path_factory.getbasetemp(), "any.pdf", data[:place] + noise + data[place + len(noise) :])
    try:
        read_file(path)
    except BadInputError:
        return


def test_a_long_text_is_asked_about_in_pieces_that_overlap(tmp_path):
    paragraphs = [f"Paragraph {number} says that item {number} costs {number} euros. " * 12 for number in range(60)]
    file = read_file(put(tmp_path, "long.md", "# Prices\n\n" + "\n\n".join(paragraphs)))
    assert all(len(text) <= PART_CHARS * 1.3 for _, text in file.parts)
    pieces = split_file(file, 3_000)
    assert len(pieces) > 3
    reader = FileReader(None, None, AnalysisRequest(file, None, "prices"))
    reader.summary = "so far"
    shown = [reader.inputs(piece) for piece in pieces]
    assert all(len(one["text"].encode()) / 3 < 3_100 for one in shown)
    for number in range(60):
        assert any(f"Paragraph {number} says" in one["text"] for one in shown)
    assert shown[0]["earlier"] == "(none)"
    assert (
        shown[1]["earlier"] in shown[0]["text"] or shown[1]["earlier"].removeprefix("[Prices]\n\n") in shown[0]["text"]
    )
    assert all(one["text"].startswith("[Prices]\n\n") for one in shown)
    assert (shown[0]["focus"], shown[0]["so_far"]) == ("prices", "so far")

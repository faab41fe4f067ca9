"""One small file of every format, written part by part, so that tests know each element in it."""

import json
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl

TEXT = """HARBOUR RULES

Boats keep left. Boats under 6 m pay nothing.

1.2 Opening hours

The gate opens at 6 am.

Version 2.1 (2024-03-01)

* The gate has a bell.
* The bell is loud.

    10:00  first boat
    11:30  second boat

Contact
-------

Ask Ida Falk.
"""

RST = """Harbour
=======

Boats keep left::

    left
    right

.. _fees:

Fees
----

.. note:: Children pay nothing.

.. table:: Fees by length

   ====== =====
   Length Euros
   ====== =====
   6 m    12
   9 m    20
   ====== =====

+-------+------+
| Month | Open |
+=======+======+
| May   | yes  |
+-------+------+

.. list-table:: Gates
   :header-rows: 1

   * - Gate
     - Width
   * - North
     - 12 m

.. This is a comment that nobody sees.

Details
~~~~~~~

* one thing
* another thing
"""

MARKDOWN = """---
title: Harbour notes
---
# Harbour

Boats keep left.

Fees
----

| Length | Euros |
| --- | --- |
| 6 m | 12 |

* first item
* second item

```
code line
```

**Who keeps the key?**

Ida Falk.
"""

HTML = """<html><head><title>Harbour</title></head><body><div role="navigation"><a href="/">Home</a></div>
<h1 id="top">Harbour<a class="headerlink" href="#top">¶</a></h1><ul><li><a href="#fees">Fees</a></ul>
<section id="fees"><h2>Fees</h2><table><caption>Fees by length</caption>
<tr><th rowspan=2>Length<th colspan=2>Euros</tr><tr><th>Summer<th>Winter</tr><tr><td>6 m<td>12<td>8</table></section>
<dl><dt>Where is the key?<dd>Under the mat.<dt>gate<dd>The way in.</dl>
<p><b>May I swim?</b></p><p>No.</p><pre>first line
  second line</pre></body></html>"""

JSON = {
    "title": "Boats",
    "boats": [{"name": "Ida", "length": 6}, {"name": "Per", "flag": True}],
    "port": {"depth": 4.5},
}

MANUAL = r""".\" A comment
.de Sp
.sp
..
.if n \{\
. ds XY nothing
.\}
.TH GATE 8 "2024-01-01" "1.0"
.SH NAME
gate \- open the \fBharbour\fR gate
.SH OPTIONS
.TP
.BR \-w ", " \-\-wait " \fISECONDS\fR"
How long to wait.
.PP
It is
.I not
asked \(lqtwice\(rq.
.nf
gate -w 5
  echo \e
.fi
"""


def make_all(folder: Path) -> dict[str, Path]:
    """Ending → file."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"txt": TEXT, "rst": RST, "md": MARKDOWN, "html": HTML, "man": MANUAL, "json": json.dumps(JSON)}
    texts |= {"csv": "Fees of the harbour\nLength,Euros\n6 m,12\n9 m,20\n", "eml": mail().as_string()}
    texts["mbox"] = "".join(f"From ida@x Thu Jun 16 16:12:1{n} 2005\n{mail()}\n" for n in range(2))
    files = {f".{ending}": folder / f"harbour.{ending}" for ending in texts}
    for ending, text in texts.items():
        files[f".{ending}"].write_text(text, "utf-8")
    for ending, write in {"docx": docx_file, "xlsx": xlsx_file, "pptx": pptx_file, "epub": epub_file}.items():
        files[f".{ending}"] = folder / f"harbour.{ending}"
        write(files[f".{ending}"])
    for ending, body in {"odt": ODT, "ods": ODS, "odp": ODP}.items():
        files[f".{ending}"] = folder / f"harbour.{ending}"
        open_document(files[f".{ending}"], body)
    return files


def zipped(file: Path, parts: dict[str, str]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def mail() -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Fees of the harbour", "Ida Falk <ida@x>", "per@x"
    message["Date"], message["Message-ID"] = "Thu, 16 Jun 2005 16:12:13 -0700", "<1@x>"
    message.set_content("The fees are below.\n\nYours, Ida\n")
    message.add_attachment("Length;Euros\n6 m;12\n", filename="fees.csv", subtype="csv")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="photo.png")
    return message


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_parts(body: str, **parts: str) -> dict[str, str]:
    kinds = "".join(
        f'<Relationship Id="r{name}" Type="http://x/relationships/{name}" Target="{name}.xml"/>' for name in parts
    )
    return {
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{kinds}</Relationships>",
        **{f"word/{name}.xml": f"<w:{name} {W}>{content}</w:{name}>" for name, content in parts.items()},
    }


def docx_file(file: Path) -> None:
    document = docx.Document()
    document.core_properties.title = "Harbour"
    document.add_heading("Fees", 1)
    document.add_paragraph("Boats keep left.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip((c for row in table.rows for c in row.cells), ("Length", "Euros", "6 m", "12"), strict=True):
        cell.text = text
    document.save(str(file))


def xlsx_file(file: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Fees"
    for row in (["Fees of the harbour"], ["Length", "Euros"], ["6 m", 12], ["9 m", 20.5]):
        sheet.append(row)
    book.save(file)


def pptx_file(file: Path) -> None:
    shape = "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>"
    line = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
    cells = "".join(f"<a:tc><a:txBody>{line.format(text)}</a:txBody></a:tc>" for text in ("Length", "Euros"))
    more = "".join(f"<a:tc><a:txBody>{line.format(text)}</a:txBody></a:tc>" for text in ("6 m", "12"))
    spaces = 'xmlns:p="p" xmlns:a="a" xmlns:r="http://x/relationships"'
    notes = shape.format('<p:ph type="body"/>', line.format("Say hello."))
    relation = '<Relationships><Relationship Id="rId7" Type="http://x/{}" Target="{}"/></Relationships>'
    zipped(
        file,
        {
            "ppt/presentation.xml": f'<p:x {spaces}><p:sldIdLst><p:sldId r:id="rId7" id="256"/></p:sldIdLst></p:x>',
            "ppt/_rels/presentation.xml.rels": relation.format("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"<p:sld {spaces}><p:spTree>"
            + shape.format("", line.format("Boats keep left."))
            + shape.format('<p:ph type="title"/>', line.format("Harbour"))
            + shape.format('<p:ph type="sldNum"/>', line.format("1"))
            + f"<p:graphicFrame><a:tbl><a:tr>{cells}</a:tr><a:tr>{more}</a:tr></a:tbl></p:graphicFrame>"
            + "</p:spTree></p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": relation.format("notesSlide", "../notesSlides/n1.xml"),
            "ppt/notesSlides/n1.xml": f"<p:notes {spaces}>{notes}</p:notes>",
        },
    )  # fmt: skip


def epub_file(file: Path) -> None:
    zipped(
        file,
        {
            "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
            "OPS/book.opf": """<package xmlns:dc="dc"><metadata><dc:title>Harbour</dc:title></metadata><manifest>
            <item id="b" href="two.xhtml"/><item id="a" href="one%20x.xhtml"/>
            <item id="n" href="nav.xhtml" properties="nav"/>
            </manifest><spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>""",
            "OPS/nav.xhtml": "<html><body><h1>Contents</h1><p>never read</p></body></html>",
            "OPS/one x.xhtml": '<!DOCTYPE html><html><body><h1 id="c1">First</h1><p>Boats keep left.</p></body></html>',
            "OPS/two.xhtml": "<html><body><h1>Second</h1><p>The gate&nbsp;opens.</p></body></html>",
        },
    )


def open_document(file: Path, body: str) -> None:
    content = f"""<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d"
    xmlns:style="s" xmlns:fo="f" xmlns:presentation="p"><office:automatic-styles><style:style style:name="P9">
    <style:paragraph-properties fo:break-before="page"/></style:style><text:list-style style:name="L1">
    <text:list-level-style-number text:level="1" style:num-format="1"/></text:list-style></office:automatic-styles>
    <office:body>{body}</office:body></office:document-content>"""
    zipped(file, {"mimetype": "application/vnd.oasis.opendocument", "content.xml": content})


ODT = """<office:text><text:h text:outline-level="1">Harbour</text:h>
<text:p>Boats<text:s/>keep <text:span>left</text:span>.<text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>Since 1990.</text:p></text:note-body></text:note></text:p>
<text:list text:style-name="L1"><text:list-item><text:p>first</text:p></text:list-item>
<text:list-item><text:p>second</text:p></text:list-item></text:list>
<text:p text:style-name="P9">Table 1: Fees</text:p><table:table><table:table-row>
<table:table-cell><text:p>Length</text:p></table:table-cell><table:table-cell><text:p>Euros</text:p></table:table-cell>
</table:table-row><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>free</text:p>
</table:table-cell><table:covered-table-cell/></table:table-row></table:table></office:text>"""

ODS = """<office:spreadsheet><table:table table:name="Fees"><table:table-row><table:table-cell><text:p>Length</text:p>
</table:table-cell><table:table-cell><text:p>Euros</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="2"><table:table-cell><text:p>6 m</text:p></table:table-cell>
<table:table-cell><text:p>12,00 €</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="16000"/></table:table-row>
<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row></table:table>
</office:spreadsheet>"""

ODP = """<office:presentation><draw:page><draw:frame presentation:class="outline"><draw:text-box>
<text:p>Boats keep left.</text:p></draw:text-box></draw:frame><draw:frame presentation:class="title"><draw:text-box>
<text:p>Harbour</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame presentation:class="notes">
<draw:text-box><text:p>Say hello.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>
</office:presentation>"""

"""Makes a folder of real documents with real writers: PDFs with tables, DOCX, HTML, Markdown, text, sheets, wrecks."""

from pathlib import Path

import docx
import openpyxl
from PIL import Image
from reportlab.lib import colors, pdfencrypt
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

STATIONS = [
    ["Station", "River", "Flow (m³/s)", "Opened"],
    ["Arnsberg", "Ruhr", "31.5", "1951-04-02"],
    ["Hagen", "Volme", "5.9", "1968-11-20"],
    ["Wetter", "Ruhr", "1,070.4", "1923-07-01"],
    ["Altena", "Lenne", "25.2", "1957-01-15"],
]
BUDGET = [
    ["Year", "Income", "Costs"],
    ["2019", "120", "95"],
    ["2020", "130", "140"],
    ["2021", "155", "121"],
]


def make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    ruled_pdf(folder / "report.pdf")
    unruled_pdf(folder / "budget.pdf")
    word_file(folder / "people.docx")
    (folder / "history.html").write_text(HTML, "utf-8")
    (folder / "notes.md").write_text(MARKDOWN, "utf-8")
    (folder / "letter.txt").write_text(TEXT, "utf-8")
    (folder / "prices.csv").write_text("Item;Price;Stock\nBolt;0.25;1200\nNut;0.15;900\nWasher;0.05;4000\n", "utf-8")
    workbook(folder / "rain.xlsx")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ngarbage")
    encrypted_pdf(folder / "secret.pdf")
    scanned_pdf(folder / "scan.pdf")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n")
    return folder


def ruled_pdf(file: Path) -> None:
    style = getSampleStyleSheet()
    grid = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
    story = [
        Paragraph("Water Report", style["Title"]),
        Paragraph(
            "The water board of Westphalia measures the flow of four rivers. Its head is Gerda Holm, who was born in "
            "Unna.",
            style["Normal"],
        ),
        PageBreak(),
        Paragraph("Stations", style["Heading2"]),
        Paragraph(
            "The oldest station was opened in 1923. All stations send their values once an hour.", style["Normal"]
        ),
        Spacer(1, 12),
        Paragraph("Table 1. The four stations and their mean flow.", style["Normal"]),
        Spacer(1, 6),
        Table(STATIONS, style=grid),
        Spacer(1, 12),
        Paragraph("Table 2. Alarms by year.", style["Normal"]),
        Spacer(1, 6),
        Table([["Year", "Alarms"], ["2020", "3"], ["2021", "7"], ["2022", "2"]], style=grid),
        PageBreak(),
        Paragraph("Outlook", style["Heading2"]),
        Paragraph("A fifth station is planned near Schwerte. It will be built by the Lenz company.", style["Normal"]),
    ]
    SimpleDocTemplate(str(file), pagesize=A4, title="Water Report").build(story)


def unruled_pdf(file: Path) -> None:
    style = getSampleStyleSheet()
    story = [
        Paragraph("Budget of the Lenz company", style["Title"]),
        Paragraph("The Lenz company builds stations. Its owner is Tove Lenz.", style["Normal"]),
        Spacer(1, 12),
        Paragraph("Table 1: Income and costs in thousand euros.", style["Normal"]),
        Spacer(1, 6),
        Table(BUDGET, colWidths=[90, 90, 90], hAlign="LEFT"),
        Spacer(1, 12),
        Paragraph("The year 2020 was the only one with a loss.", style["Normal"]),
    ]
    SimpleDocTemplate(str(file), pagesize=A4).build(story)


def encrypted_pdf(file: Path) -> None:
    lock = pdfencrypt.StandardEncryption("open sesame")
    SimpleDocTemplate(str(file), encrypt=lock).build([Paragraph("Nobody reads this.", getSampleStyleSheet()["Normal"])])


def scanned_pdf(file: Path) -> None:
    Image.new("L", (600, 800), 200).save(file)


def word_file(file: Path) -> None:
    document = docx.Document()
    document.add_heading("People of the board", 0)
    document.add_heading("Tove Lenz", 1)
    document.add_paragraph("Tove Lenz is an engineer. She studied in Aachen and plays the cello.")
    document.add_page_break()
    document.add_heading("Gerda Holm", 1)
    document.add_paragraph("Gerda Holm has led the water board since 2014.")
    document.add_paragraph("Table 1: Years in office")
    table = document.add_table(rows=0, cols=2)
    for row in (["Name", "Since"], ["Gerda Holm", "2014"], ["Ole Brandt", "2019"]):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(str(file))


def workbook(file: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Rain 2023"
    for row in (["Month", "Rain in mm"], ["May", 41], ["June", 88.5], ["July", 63]):
        sheet.append(row)
    book.save(file)


HTML = """<!doctype html><html><head><title>History of Schwerte</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav><h1>History of Schwerte</h1>
<p>Schwerte is a town on the Ruhr. Its <b>first bridge</b> was built in 1405.</p>
<h2>Mayors</h2><table><caption>Mayors since 1990</caption><tr><th>Mayor</th><th>Elected</th></tr>
<tr><td>Ida Falk</td><td>1990</td></tr><tr><td>Per Gran</td><td>2004</td></tr></table>
<ul><li>Ida Falk was born in Hagen.</li><li>Per Gran wrote a book about Unna.</li></ul>
<script>var hidden = "never shown";</script></body></html>
"""

MARKDOWN = """# Notes on Unna

Unna is a town in Westphalia. It has 59,000 inhabitants.

## Salt works

The salt works of Unna were closed in 1941.

| Well | Depth (m) |
| --- | ---: |
| Christina | 302 |
| Frederike | 188 |
"""

TEXT = """Dear Ms. Holm,

the pump at Arnsberg failed on 3 May 2023. Dr. Kerr replaced it within two days.

Yours,
Ole Brandt
\fPostscript: the invoice is 4,200 euros.
"""

"""A shop of records in SQLite, laid out as the Chinook sample database is, and twenty questions with gold by SQL.

    python benchmarks/record_shop.py FOLDER     writes FOLDER/shop.db, builds FOLDER/shop.kb and asks

The questions were written before any was tried. Each has the SQL that answers it; an answer is right where the names
that are put forward are the names that the SQL gives, or the value is its value.
"""

import random
import sqlite3
import sys
from pathlib import Path

import clew
from clew.lab.evaluation.judging import same_value

TABLES = """
CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Title NVARCHAR(160) NOT NULL, ReleaseYear INTEGER,
  ArtistId INTEGER NOT NULL REFERENCES Artist (ArtistId));
CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE MediaType (MediaTypeId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, Name NVARCHAR(200) NOT NULL,
  AlbumId INTEGER REFERENCES Album (AlbumId),
  MediaTypeId INTEGER NOT NULL REFERENCES MediaType (MediaTypeId), GenreId INTEGER REFERENCES Genre (GenreId),
  Composer NVARCHAR(220), Milliseconds INTEGER NOT NULL, UnitPrice NUMERIC(10,2) NOT NULL);
CREATE TABLE Playlist (PlaylistId INTEGER PRIMARY KEY, Name NVARCHAR(120));
CREATE TABLE PlaylistTrack (PlaylistId INTEGER NOT NULL REFERENCES Playlist (PlaylistId),
  TrackId INTEGER NOT NULL REFERENCES Track (TrackId), Position INTEGER, PRIMARY KEY (PlaylistId, TrackId));
CREATE TABLE Employee (EmployeeId INTEGER PRIMARY KEY, LastName NVARCHAR(20) NOT NULL, FirstName NVARCHAR(20) NOT NULL,
  Title NVARCHAR(30), ReportsTo INTEGER REFERENCES Employee (EmployeeId), HireDate DATETIME, City NVARCHAR(40));
CREATE TABLE Customer (CustomerId INTEGER PRIMARY KEY, FirstName NVARCHAR(40) NOT NULL, LastName NVARCHAR(20) NOT NULL,
  Company NVARCHAR(80), City NVARCHAR(40), Country NVARCHAR(40), Email NVARCHAR(60),
  SupportRepId INTEGER REFERENCES Employee (EmployeeId));
CREATE TABLE Invoice (InvoiceId INTEGER PRIMARY KEY, CustomerId INTEGER NOT NULL REFERENCES Customer (CustomerId),
  InvoiceDate DATETIME NOT NULL, BillingCountry NVARCHAR(40), Total NUMERIC(10,2) NOT NULL);
CREATE TABLE InvoiceLine (InvoiceLineId INTEGER PRIMARY KEY, InvoiceId INTEGER NOT NULL REFERENCES Invoice (InvoiceId),
  TrackId INTEGER NOT NULL REFERENCES Track (TrackId), UnitPrice NUMERIC(10,2) NOT NULL, Quantity INTEGER NOT NULL);
"""
ALBUMS = {
    ("Miles Davis", "Jazz"): {
        ("Kind of Blue", 1959): ["So What", "Freddie Freeloader", "Blue in Green", "All Blues", "Flamenco Sketches"],
        ("Bitches Brew", 1970): ["Pharaoh's Dance", "Spanish Key", "John McLaughlin", "Sanctuary"],
    },
    ("John Coltrane", "Jazz"): {
        ("A Love Supreme", 1965): ["Acknowledgement", "Resolution", "Pursuance", "Psalm"],
        ("Blue Train", 1958): ["Moment's Notice", "Locomotion", "Lazy Bird"],
    },
    ("Led Zeppelin", "Rock"): {
        ("Led Zeppelin IV", 1971): ["Black Dog", "Rock and Roll", "Stairway to Heaven", "When the Levee Breaks"],
        ("Houses of the Holy", 1973): ["The Rain Song", "Over the Hills and Far Away", "No Quarter", "The Ocean"],
        ("Physical Graffiti", 1975): ["Kashmir", "Trampled Under Foot", "Houses of the Holy", "Ten Years Gone"],
    },
    ("Fleetwood Mac", "Rock"): {
        ("Rumours", 1977): ["Second Hand News", "Dreams", "Go Your Own Way", "The Chain", "Gold Dust Woman"],
        ("Tusk", 1979): ["Sara", "Storms", "Think About Me", "Brown Eyes"],
    },
    ("Radiohead", "Alternative"): {
        ("OK Computer", 1997): ["Airbag", "Paranoid Android", "Karma Police", "No Surprises", "Lucky"],
        ("Kid A", 2000): ["Everything in Its Right Place", "The National Anthem", "Optimistic", "Idioteque"],
        ("In Rainbows", 2007): ["15 Step", "Bodysnatchers", "Nude", "Reckoner", "Videotape"],
    },
    ("Massive Attack", "Electronic"): {
        ("Mezzanine", 1998): ["Angel", "Risingson", "Teardrop", "Inertia Creeps"],
        ("Blue Lines", 1991): ["Safe from Harm", "Unfinished Sympathy", "Five Man Army"],
    },
    ("Kraftwerk", "Electronic"): {
        ("Autobahn", 1974): ["Autobahn", "Kometenmelodie", "Mitternacht"],
        ("Trans-Europe Express", 1977): ["Europe Endless", "The Hall of Mirrors", "Showroom Dummies"],
    },
    ("Buena Vista Social Club", "Latin"): {
        ("Buena Vista Social Club", 1997): ["Chan Chan", "El Cuarto de Tula", "Dos Gardenias", "Candela"],
    },
    ("Antônio Carlos Jobim", "Latin"): {
        ("Wave", 1967): ["Wave", "The Red Blouse", "Look to the Sky", "Triste"],
    },
    ("Glenn Gould", "Classical"): {
        ("Bach: The Goldberg Variations", 1956): ["Aria", "Variation 1", "Variation 5", "Variation 25"],
    },
}
COMPOSERS = {"Kind of Blue": "Miles Davis", "Rumours": "Stevie Nicks, Lindsey Buckingham", "Wave": "Tom Jobim"}
MEDIA = ["MPEG audio file", "AAC audio file", "Purchased AAC audio file"]
PLAYLISTS = ["Road Trip", "Sunday Morning", "Late Night Jazz", "Staff Favourites"]
EMPLOYEES = [
    (1, "Adams", "Andrew", "General Manager", None, "2002-08-14 00:00:00", "Edmonton"),
    (2, "Edwards", "Nancy", "Sales Manager", 1, "2002-05-01 00:00:00", "Calgary"),
    (3, "Peacock", "Jane", "Sales Support Agent", 2, "2002-04-01 00:00:00", "Calgary"),
    (4, "Park", "Margaret", "Sales Support Agent", 2, "2003-05-03 00:00:00", "Calgary"),
    (5, "Johnson", "Steve", "Sales Support Agent", 2, "2003-10-17 00:00:00", "Lethbridge"),
    (6, "Mitchell", "Michael", "IT Manager", 1, "2003-10-17 00:00:00", "Calgary"),
]
CUSTOMERS = [
    ("Luís", "Gonçalves", "Embraer", "São José dos Campos", "Brazil"),
    ("Leonie", "Köhler", None, "Stuttgart", "Germany"),
    ("François", "Tremblay", None, "Montréal", "Canada"),
    ("Bjørn", "Hansen", None, "Oslo", "Norway"),
    ("František", "Wichterlová", "JetBrains", "Prague", "Czech Republic"),
    ("Helena", "Holý", None, "Prague", "Czech Republic"),
    ("Astrid", "Gruber", None, "Vienna", "Austria"),
    ("Kara", "Nielsen", None, "Copenhagen", "Denmark"),
    ("Eduardo", "Martins", "Woodstock Discos", "São Paulo", "Brazil"),
    ("Mark", "Philips", "Telus", "Edmonton", "Canada"),
    ("Jennifer", "Peterson", "Rogers Canada", "Vancouver", "Canada"),
    ("Frank", "Harris", "Google Inc.", "Mountain View", "USA"),
    ("Hannah", "Schneider", None, "Berlin", "Germany"),
    ("Fynn", "Zimmermann", None, "Frankfurt", "Germany"),
    ("Camille", "Bernard", None, "Paris", "France"),
    ("Emma", "Jones", None, "London", "United Kingdom"),
]
QUESTIONS = [
    (
        "Which albums are by Led Zeppelin?",
        "SELECT Title FROM Album JOIN Artist USING (ArtistId) WHERE Name = 'Led Zeppelin'",
    ),
    (
        "Who recorded the album Blue Lines?",
        "SELECT Name FROM Album JOIN Artist USING (ArtistId) WHERE Title = 'Blue Lines'",
    ),
    ("Which tracks are on Kid A?", "SELECT Name FROM Track JOIN Album USING (AlbumId) WHERE Title = 'Kid A'"),
    (
        "What genre is the track Teardrop?",
        "SELECT g.Name FROM Track t JOIN Genre g USING (GenreId) WHERE t.Name = 'Teardrop'",
    ),
    (
        "On which album is Karma Police?",
        "SELECT Title FROM Track JOIN Album USING (AlbumId) WHERE Name = 'Karma Police'",
    ),
    (
        "Which artist made the track Kashmir?",
        "SELECT r.Name FROM Track t JOIN Album USING (AlbumId) JOIN Artist r USING (ArtistId) WHERE t.Name = 'Kashmir'",
    ),
    (
        "How many albums does Radiohead have?",
        "SELECT count(*) FROM Album JOIN Artist USING (ArtistId) WHERE Name = 'Radiohead'",
    ),
    ("Which albums were released before 1960?", "SELECT Title FROM Album WHERE ReleaseYear < 1960"),
    ("What is the release year of Tusk?", "SELECT ReleaseYear FROM Album WHERE Title = 'Tusk'"),
    ("Which customers live in Germany?", "SELECT FirstName || ' ' || LastName FROM Customer WHERE Country = 'Germany'"),
    (
        "Who is the support rep of Emma Jones?",
        (
            "SELECT e.FirstName || ' ' || e.LastName FROM Customer c JOIN Employee e ON SupportRepId = EmployeeId "
            "WHERE c.LastName = 'Jones'"
        ),
    ),
    (
        "Who reports to Nancy Edwards?",
        (
            "SELECT e.FirstName || ' ' || e.LastName FROM Employee e JOIN Employee m ON e.ReportsTo = m.EmployeeId "
            "WHERE m.LastName = 'Edwards'"
        ),
    ),
    ("How many customers are there?", "SELECT count(*) FROM Customer"),
    (
        "Which tracks are in the playlist Late Night Jazz?",
        (
            "SELECT t.Name FROM Track t JOIN PlaylistTrack USING (TrackId) JOIN Playlist p USING (PlaylistId) "
            "WHERE p.Name = 'Late Night Jazz'"
        ),
    ),
    (
        "Which playlists contain Dreams?",
        (
            "SELECT p.Name FROM Track t JOIN PlaylistTrack USING (TrackId) JOIN Playlist p USING (PlaylistId) "
            "WHERE t.Name = 'Dreams'"
        ),
    ),
    (
        "Which customers are supported by Jane Peacock?",
        (
            "SELECT c.FirstName || ' ' || c.LastName FROM Customer c JOIN Employee e ON SupportRepId = EmployeeId "
            "WHERE e.LastName = 'Peacock'"
        ),
    ),
    ("What is the longest track?", "SELECT Name FROM Track ORDER BY Milliseconds DESC LIMIT 1"),
    (
        "Which invoices belong to Frank Harris?",
        "SELECT 'Invoice ' || InvoiceId FROM Invoice JOIN Customer USING (CustomerId) WHERE LastName = 'Harris'",
    ),
    ("What is the job title of Michael Mitchell?", "SELECT Title FROM Employee WHERE LastName = 'Mitchell'"),
    (
        "Which jazz albums came out after 1960?",
        (
            "SELECT DISTINCT Title FROM Track t JOIN Album USING (AlbumId) JOIN Genre g USING (GenreId) "
            "WHERE g.Name = 'Jazz' AND ReleaseYear > 1960"
        ),
    ),
]


def write_shop(file: Path, seed: int = 7) -> None:
    """The database, the same every time."""
    chance = random.Random(seed)
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as shop:
        shop.executescript(TABLES)
        genres = list(dict.fromkeys(genre for _, genre in ALBUMS))
        shop.executemany("INSERT INTO Genre VALUES (?, ?)", list(enumerate(genres, 1)))
        shop.executemany("INSERT INTO MediaType VALUES (?, ?)", list(enumerate(MEDIA, 1)))
        prices = []
        for artist, ((name, genre), albums) in enumerate(ALBUMS.items(), 1):
            shop.execute("INSERT INTO Artist VALUES (?, ?)", (artist, name))
            for (title, year), tracks in albums.items():
                album = shop.execute("INSERT INTO Album VALUES (NULL, ?, ?, ?)", (title, year, artist)).lastrowid
                for track in tracks:
                    price = chance.choice([0.99, 0.99, 1.29])
                    media, length = chance.randint(1, 3), chance.randint(90_000, 900_000)
                    row = (track, album, media, genres.index(genre) + 1, COMPOSERS.get(title), length, price)
                    shop.execute("INSERT INTO Track VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
                    prices.append(price)
        shop.executemany("INSERT INTO Playlist VALUES (?, ?)", list(enumerate(PLAYLISTS, 1)))
        for playlist in range(1, len(PLAYLISTS) + 1):
            for place, track in enumerate(chance.sample(range(1, len(prices) + 1), 9), 1):
                shop.execute("INSERT INTO PlaylistTrack VALUES (?, ?, ?)", (playlist, track, place))
        shop.execute("INSERT OR IGNORE INTO PlaylistTrack SELECT 1, TrackId, 10 FROM Track WHERE Name = 'Dreams'")
        shop.executemany("INSERT INTO Employee VALUES (?, ?, ?, ?, ?, ?, ?)", EMPLOYEES)
        for customer, (first, last, company, city, country) in enumerate(CUSTOMERS, 1):
            mail = f"{first}.{last}@example.org".lower()
            row = (customer, first, last, company, city, country, mail, 3 + customer % 3)
            shop.execute("INSERT INTO Customer VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            for _ in range(chance.randint(1, 4)):
                bought = chance.sample(range(1, len(prices) + 1), chance.randint(1, 5))
                total = round(sum(prices[track - 1] for track in bought), 2)
                day = f"{chance.randint(2009, 2013)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02} 00:00:00"
                row = (customer, day, country, total)
                invoice = shop.execute("INSERT INTO Invoice VALUES (NULL, ?, ?, ?, ?)", row).lastrowid
                lines = [(invoice, track, prices[track - 1], 1) for track in bought]
                shop.executemany("INSERT INTO InvoiceLine VALUES (NULL, ?, ?, ?, ?)", lines)
    shop.close()


def is_right(answer: clew.Answer, gold: set[str]) -> bool:
    """Whether what is put forward, or else the value, is what the SQL gives."""
    if answer.value is not None:
        return len(gold) == 1 and same_value(answer.value, next(iter(gold)))
    return answer.found and {candidate.node.name for candidate in answer.answer_set} == gold


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_shop(folder / "shop.db")
    clew.build([folder / "shop.db"], folder / "shop.kb")
    base, shop = clew.open(folder / "shop.kb"), sqlite3.connect(folder / "shop.db")
    right = 0
    for question, sql in QUESTIONS:
        gold = {str(value) for (value,) in shop.execute(sql)}
        answer = base.ask(question)
        right += is_right(answer, gold)
        shown = answer.value if answer.value is not None else [one.node.name for one in answer.answer_set]
        print("right" if is_right(answer, gold) else "WRONG", "|", question, "|", sorted(gold), "|", shown)
    print(f"{right} of {len(QUESTIONS)} right")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

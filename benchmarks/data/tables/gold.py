"""The questions over the tables of this folder, each with the code that computes its answer; writes questions.jsonl.

The questions were written before any system was tried on them, with the tables in view and without looking at code that
answers. `first` are the tables that the certainty and the shape of the base were tuned on, `second` those that figures
are reported for.
"""

# ruff: noqa: ARG005
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).parent
Gold = Callable[[pd.DataFrame], Any]
MISSING = ["", "NA", "–"]


def plain(cells: pd.Series) -> pd.Series:
    """A column as numbers where it is one, `$` and thousands separators taken off."""
    bare = cells.astype(str).str.replace(r"[$,%]", "", regex=True).where(cells.notna())
    numbers = pd.to_numeric(bare, errors="coerce")
    return numbers if numbers.notna().sum() == cells.notna().sum() and cells.notna().any() else cells


def load(name: str) -> pd.DataFrame:
    """A table with typed columns, without rows of totals; the first column is `key` where it has no name."""
    frame = pd.read_csv(HERE / f"{name}.csv", dtype=str, keep_default_na=False, na_values=MISSING)
    frame = frame.rename(columns={"Unnamed: 0": "key"}).apply(plain)
    return frame[frame.iloc[:, 0].astype(str) != "Total"]


def names(column: str, chosen: pd.DataFrame) -> list[str]:
    """The names of rows."""
    return [str(cell) for cell in chosen[column]]


TITLES: dict[str, tuple[str, str, str]] = {}
"""Table → half, title as a document would give it, column that names the rows."""
QUESTIONS: list[dict[str, Any]] = []


def table(half: str, name: str, title: str, key: str, questions: list[tuple[str, str, Gold | None]]) -> None:
    """Adds the questions over a table; a gold of None says that the table cannot answer."""
    frame = load(name)
    TITLES[name] = (half, title, key)
    for kind, question, gold in questions:
        answer = None if gold is None else gold(frame)
        also: list[list[str]] = []
        if isinstance(answer, pd.DataFrame):
            others = [
                c
                for c in frame
                if c != key and not pd.api.types.is_numeric_dtype(frame[c]) and frame[c].nunique() == len(frame)
            ]
            also = [names(column, answer) for column in others]
            answer = names(key, answer)
            assert answer, question
        elif hasattr(answer, "item"):
            answer = answer.item()
        line = {"half": half, "table": name, "title": title, "kind": kind, "question": question, "gold": answer}
        QUESTIONS.append({**line, "also": also} if also else line)


def row(column: str, cell: Any, wanted: str) -> Gold:
    """One cell."""
    return lambda d: d.loc[d[column] == cell, wanted].iloc[0]


def most(column: str) -> Gold:
    """The rows with the highest value."""
    return lambda d: d[d[column] == d[column].max()]


def least(column: str) -> Gold:
    """The rows with the lowest value."""
    return lambda d: d[d[column] == d[column].min()]


def larger(key: str, one: Any, other: Any, column: str, *, most: bool = True) -> Gold:
    """Which of two rows has more."""

    def gold(d: pd.DataFrame) -> pd.DataFrame:
        both = d[d[key].isin([one, other])]
        return both[both[column] == (both[column].max() if most else both[column].min())]

    return gold


table(
    "first",
    "msleep",
    "msleep",
    "name",
    [
        ("value", "How many hours a day does a lion sleep?", row("name", "Lion", "sleep_total")),
        ("value", "body weight of the giraffe", row("name", "Giraffe", "bodywt")),
        ("value", "To which order does the tree shrew belong?", row("name", "Tree shrew", "order")),
        ("value", "what's the conservation status of the tiger", row("name", "Tiger", "conservation")),
        ("max", "Which animal sleeps the longest?", most("sleep_total")),
        ("min", "lightest mammal in the table", least("bodywt")),
        (
            "max",
            "Which primate has the heaviest brain?",
            lambda d: d[d.brainwt == d[d.order == "Primates"].brainwt.max()],
        ),
        ("count", "How many of the animals are rodents, order Rodentia?", lambda d: (d.order == "Rodentia").sum()),
        ("filter", "Which mammals weigh more than 500 kg?", lambda d: d[d.bodywt > 500]),
        ("filter", "animals sleeping less than 3 hours in total", lambda d: d[d.sleep_total < 3]),
        ("compare", "Does the cheetah or the jaguar sleep longer?", larger("name", "Cheetah", "Jaguar", "sleep_total")),
        (
            "average",
            "On average, how many hours do carnivora sleep in total?",
            lambda d: d[d.order == "Carnivora"].sleep_total.mean(),
        ),
        ("none", "What is the life expectancy of the giraffe?", None),
        ("none", "Which zoo keeps the most tigers?", None),
    ],
)
table(
    "first",
    "presidential",
    "presidential",
    "name",
    [
        ("value", "Which party did Nixon belong to?", row("name", "Nixon", "party")),
        ("date", "When did Carter take office (start)?", row("name", "Carter", "start")),
        ("date", "When did Kennedy's term end?", row("name", "Kennedy", "end")),
        ("filter", "list the Democratic presidents", lambda d: d[d.party == "Democratic"]),
        ("count", "How many presidents were Republican?", lambda d: (d.party == "Republican").sum()),
        ("count", "number of presidents in the list", lambda d: len(d)),
        ("filter", "Which presidents started after 1980?", lambda d: d[d.start > "1981"]),
        ("min", "Who is the earliest president listed here, by start of term?", least("start")),
        ("max", "Which president's term ended most recently?", most("end")),
        (
            "filter",
            "Which Republicans began their term before 1970?",
            lambda d: d[(d.party == "Republican") & (d.start < "1970")],
        ),
        ("truth", "Was Reagan a Democratic president?", lambda d: False),
        ("compare", "Who started earlier, Ford or Clinton?", larger("name", "Ford", "Clinton", "start", most=False)),
        ("none", "Who was Carter's vice president?", None),
        ("none", "How many electoral votes did Reagan win?", None),
    ],
)
table(
    "first",
    "cars93",
    "Cars93",
    "Make",
    [
        ("value", "What does a BMW 535i cost (mid-range price)?", row("Make", "BMW 535i", "Price")),
        ("value", "horse power of the Dodge Stealth", row("Make", "Dodge Stealth", "Horsepower")),
        ("value", "How many passengers fit into the Toyota Previa?", row("Make", "Toyota Previa", "Passengers")),
        ("value", "city mileage of the Honda Civic", row("Make", "Honda Civic", "MPG.city")),
        ("max", "Which car is the heaviest?", most("Weight")),
        ("max", "What car gets the best miles per gallon on the highway?", most("MPG.highway")),
        ("min", "cheapest car by price", least("Price")),
        ("count", "How many vans are there?", lambda d: (d.Type == "Van").sum()),
        ("filter", "cars with more than 250 horsepower", lambda d: d[d.Horsepower > 250]),
        ("filter", "Which Ford cars are sporty?", lambda d: d[(d.Manufacturer == "Ford") & (d.Type == "Sporty")]),
        ("compare", "Is the Volvo 240 or the Saab 900 heavier?", larger("Make", "Volvo 240", "Saab 900", "Weight")),
        (
            "difference",
            "How much more horsepower does the Chevrolet Corvette have than the Ford Mustang?",
            lambda d: (
                d[d.Make == "Chevrolet Corvette"].Horsepower.iloc[0] - d[d.Make == "Ford Mustang"].Horsepower.iloc[0]
            ),
        ),
        ("none", "How fast is the Dodge Stealth from 0 to 60?", None),
        ("none", "Who is the chief executive of Ford?", None),
    ],
)
table(
    "first",
    "us_expenditure",
    "US personal expenditure in billions of dollars",
    "key",
    [
        ("value", "How much was spent on food and tobacco in 1950?", row("key", "Food and Tobacco", "1950")),
        ("value", "personal care spending 1960", row("key", "Personal Care", "1960")),
        ("value", "What did Americans pay for private education in 1940?", row("key", "Private Education", "1940")),
        ("value", "Expenditure for medical and health, 1955", row("key", "Medical and Health", "1955")),
        ("max", "What did people spend the most on in 1945?", most("1945")),
        ("min", "Which category had the lowest spending in 1955?", least("1955")),
        ("filter", "Which categories were above 20 billion in 1960?", lambda d: d[d["1960"] > 20]),
        ("count", "How many categories exceeded 10 in 1950?", lambda d: (d["1950"] > 10).sum()),
        (
            "compare",
            "Was more spent on personal care or on private education in 1960?",
            larger("key", "Personal Care", "Private Education", "1960"),
        ),
        ("sum", "total expenditure in 1940 over all categories", lambda d: d["1940"].sum()),
        ("difference", "By how much did food and tobacco exceed household operation in 1955?", lambda d: 73.2 - 36.5),
        ("none", "How much was spent on food and tobacco in 1990?", None),
        ("none", "How much was spent on rent in 1950?", None),
    ],
)
table(
    "first",
    "hills",
    "Record times in 1984 for Scottish hill races",
    "Race",
    [
        ("value", "How long is the Ben Nevis race?", row("Race", "Ben Nevis", "Distance (miles)")),
        ("value", "height gained in the Bens of Jura race", row("Race", "Bens of Jura", "Climb (ft)")),
        ("value", "What is the record for Cow Hill, in minutes?", row("Race", "Cow Hill", "Record time (min)")),
        ("max", "Which race covers the greatest distance?", most("Distance (miles)")),
        ("max", "race with the most climbing", most("Climb (ft)")),
        ("min", "Which hill race has the quickest record time?", least("Record time (min)")),
        ("filter", "Which races are longer than 15 miles?", lambda d: d[d["Distance (miles)"] > 15]),
        ("filter", "races with a climb of at least 4,400 feet", lambda d: d[d["Climb (ft)"] >= 4400]),
        ("count", "How many races take more than 100 minutes?", lambda d: (d["Record time (min)"] > 100).sum()),
        ("count", "number of races between 5 and 6 miles long", lambda d: d["Distance (miles)"].between(5, 6).sum()),
        (
            "compare",
            "Which has more climb, Goatfell or Cairngorm?",
            larger("Race", "Goatfell", "Cairngorm", "Climb (ft)"),
        ),
        ("average", "What is the average climb of the races?", lambda d: d["Climb (ft)"].mean()),
        ("none", "Who holds the record at Ben Lomond?", None),
        ("none", "How many runners took part in Moffat Chase?", None),
    ],
)
table(
    "first",
    "painters",
    "De Piles's assessment of 54 classical painters",
    "key",
    [
        ("value", "What score did Rembrandt get for colour?", row("key", "Rembrandt", "Colour")),
        ("value", "How well did de Piles rate Michelangelo's drawing?", row("key", "Michelangelo", "Drawing")),
        ("value", "composition mark for Titian", row("key", "Titian", "Composition")),
        ("value", "What school is Caravaggio from?", row("key", "Caravaggio", "School")),
        ("max", "Who is the best at expression?", most("Expression")),
        ("max", "painter with the highest drawing score", most("Drawing")),
        ("min", "Which painter got the lowest score for colour?", lambda d: d[d.Colour == d.Colour.min()]),
        ("filter", "Which painters scored 18 in composition?", lambda d: d[d.Composition == 18]),
        ("filter", "painters of school H", lambda d: d[d.School == "H"]),
        ("count", "How many painters have zero for expression?", lambda d: (d.Expression == 0).sum()),
        ("compare", "Who draws better, Rubens or Poussin?", larger("key", "Rubens", "Poussin", "Drawing")),
        ("average", "mean colour score of all painters", lambda d: d.Colour.mean()),
        ("none", "When was Raphael born?", None),
        ("none", "Where does Titian's most famous painting hang?", None),
    ],
)
table(
    "first",
    "antibiotics",
    "Minimum inhibitory concentration of three antibiotics",
    "Bacteria",
    [
        (
            "value",
            "How much penicillin is needed against Escherichia coli?",
            row("Bacteria", "Escherichia coli", "Penicillin"),
        ),
        ("value", "neomycin concentration for Brucella abortus", row("Bacteria", "Brucella abortus", "Neomycin")),
        (
            "value",
            "Is Bacillus anthracis gram positive or negative?",
            row("Bacteria", "Bacillus anthracis", "Gram_Staining"),
        ),
        ("value", "streptomycin for staphylococcus aureus", row("Bacteria", "Staphylococcus aureus", "Streptomycin")),
        ("max", "Which bacterium needs the most penicillin?", most("Penicillin")),
        (
            "max",
            "What bacteria is the most resistant to streptomycin, i.e. has the highest value?",
            most("Streptomycin"),
        ),
        ("count", "How many bacteria are gram-negative?", lambda d: (d.Gram_Staining == "negative").sum()),
        ("filter", "List the bacteria of the genus Streptococcus.", lambda d: d[d.Genus == "Streptococcus"]),
        ("filter", "bacteria with penicillin above 500", lambda d: d[d.Penicillin > 500]),
        (
            "filter",
            "Which gram positive bacteria need more than 5 of streptomycin?",
            lambda d: d[(d.Gram_Staining == "positive") & (d.Streptomycin > 5)],
        ),
        (
            "compare",
            "Does Proteus vulgaris or Klebsiella pneumoniae take more neomycin?",
            larger("Bacteria", "Proteus vulgaris", "Klebsiella pneumoniae", "Neomycin"),
        ),
        ("none", "Who discovered Escherichia coli?", None),
        ("none", "What is the price of neomycin?", None),
    ],
)
table(
    "first",
    "seattle_weather",
    "seattle-weather",
    "date",
    [
        ("value", "How windy was it on 2012/02/18?", row("date", "2012/02/18", "wind")),
        ("value", "maximum temperature on 8 July 2012", row("date", "2012/07/08", "temp_max")),
        ("value", "What was the weather like on March 15, 2012?", row("date", "2012/03/15", "weather")),
        ("max", "Which day had the most precipitation?", most("precipitation")),
        ("min", "When was the coldest minimum temperature?", least("temp_min")),
        ("max", "windiest day", most("wind")),
        ("count", "On how many days did it snow?", lambda d: (d.weather == "snow").sum()),
        ("count", "How many sunny days (weather sun) were there?", lambda d: (d.weather == "sun").sum()),
        ("count", "number of days with more than 20 mm of precipitation", lambda d: (d.precipitation > 20).sum()),
        ("filter", "On which days was the wind stronger than 7.4?", lambda d: d[d.wind > 7.4]),
        ("average", "What is the average maximum temperature?", lambda d: d.temp_max.mean()),
        ("sum", "total precipitation in May 2012", lambda d: d[d.date.str.startswith("2012/05")].precipitation.sum()),
        ("none", "How many people live in Seattle?", None),
        ("none", "What was the air pressure on 2012/02/18?", None),
    ],
)
table(
    "first",
    "forbes",
    "The Forbes list of leading companies, 2004",
    "Company",
    [
        ("value", "How much profit did Microsoft make?", row("Company", "Microsoft", "Profits (US$ bn)")),
        ("value", "Which country is Nestle from?", row("Company", "Nestle", "Country")),
        ("value", "what is IBM worth on the stock market", row("Company", "IBM", "MarketValue")),
        ("value", "Toyota Motor's sales", row("Company", "Toyota Motor", "Sales (US$ bn)")),
        ("max", "Which company sells the most?", most("Sales (US$ bn)")),
        (
            "max",
            "Which French company has the biggest assets?",
            lambda d: d[d["Total assets (US$ bn)"] == d[d.Country == "France"]["Total assets (US$ bn)"].max()],
        ),
        ("count", "How many companies come from Japan?", lambda d: (d.Country == "Japan").sum()),
        ("count", "number of insurance companies", lambda d: (d.Industry == "Insurance").sum()),
        ("filter", "companies with profits over $10 bn", lambda d: d[d["Profits (US$ bn)"] > 10]),
        (
            "filter",
            "Which French companies are in banking?",
            lambda d: d[(d.Country == "France") & (d.Industry == "Banking")],
        ),
        (
            "compare",
            "Who has the larger market value, Intel or Pfizer?",
            larger("Company", "Intel", "Pfizer", "MarketValue"),
        ),
        (
            "sum",
            "What are the combined sales of the Swiss companies (country Switzerland)?",
            lambda d: d[d.Country == "Switzerland"]["Sales (US$ bn)"].sum(),
        ),
        ("none", "Who is the CEO of Nestle?", None),
        ("none", "How many employees does Microsoft have?", None),
    ],
)
table(
    "first",
    "shuttle",
    "Space shuttle O-ring failures",
    "FlightNumber",
    [
        ("value", "How cold was it when 51C was launched?", row("FlightNumber", "51C", "Temperature")),
        ("value", "number of failures on flight 61A", row("FlightNumber", "61A", "nFailures")),
        ("value", "What was the pressure for flight 41B?", row("FlightNumber", "41B", "Pressure")),
        ("truth", "Did flight 51D fail?", lambda d: False),
        ("max", "Which flight had the greatest damage?", most("Damage")),
        ("min", "flight with the lowest temperature", least("Temperature")),
        ("count", "How many flights had a failure?", lambda d: (d.Fail == "yes").sum()),
        ("filter", "flights below 60 degrees", lambda d: d[d.Temperature < 60]),
        ("filter", "Which flights took place at a temperature of 80 or more?", lambda d: d[d.Temperature >= 80]),
        (
            "compare",
            "Was it colder for 41B or for 61C?",
            larger("FlightNumber", "41B", "61C", "Temperature", most=False),
        ),
        ("average", "average temperature of the flights", lambda d: d.Temperature.mean()),
        ("none", "Who commanded flight 51C?", None),
        ("none", "How long did flight 61A stay in orbit?", None),
    ],
)

table(
    "second",
    "prestige",
    "Prestige of Canadian occupations",
    "key",
    [
        ("value", "How much do architects earn?", row("key", "architects", "income")),
        ("value", "share of women among librarians", row("key", "librarians", "women")),
        ("value", "How prestigious are farmers?", row("key", "farmers", "prestige")),
        ("value", "How many years of schooling do electricians have?", row("key", "electricians", "education")),
        ("max", "Which job pays best in terms of income?", most("income")),
        ("max", "What is the most respected profession?", most("prestige")),
        ("min", "occupation with the least education", least("education")),
        ("filter", "Which occupations earn more than 15,000?", lambda d: d[d.income > 15000]),
        ("filter", "Which jobs are more than 95 percent female?", lambda d: d[d.women > 95]),
        ("count", "How many occupations are of type prof?", lambda d: (d.type == "prof").sum()),
        (
            "compare",
            "Do plumbers or carpenters have the higher income?",
            larger("key", "plumbers", "carpenters", "income"),
        ),
        ("average", "What do blue collar (bc) occupations earn on average?", lambda d: d[d.type == "bc"].income.mean()),
        ("none", "How many architects are there in Canada?", None),
        ("none", "How many hours a week do nurses work?", None),
    ],
)
table(
    "second",
    "un",
    "GDP and infant mortality",
    "Country",
    [
        (
            "value",
            "What is the gross domestic product per head in Brazil?",
            row("Country", "Brazil", "GDP per capita (US$)"),
        ),
        ("value", "infant deaths in Angola", row("Country", "Angola", "Infant mortality (per 1,000 live births)")),
        ("value", "How rich is Norway per person?", row("Country", "Norway", "GDP per capita (US$)")),
        ("max", "Which country has the highest infant mortality?", most("Infant mortality (per 1,000 live births)")),
        ("max", "What's the richest country?", most("GDP per capita (US$)")),
        ("min", "country with lowest GDP", least("GDP per capita (US$)")),
        (
            "filter",
            "Which countries have a GDP per capita above $35,000?",
            lambda d: d[d["GDP per capita (US$)"] > 35000],
        ),
        (
            "filter",
            "countries where infant mortality exceeds 140",
            lambda d: d[d["Infant mortality (per 1,000 live births)"] > 140],
        ),
        (
            "count",
            "In how many countries is infant mortality below 5?",
            lambda d: (d["Infant mortality (per 1,000 live births)"] < 5).sum(),
        ),
        (
            "compare",
            "Is Chile or Argentina richer by GDP?",
            larger("Country", "Chile", "Argentina", "GDP per capita (US$)"),
        ),
        (
            "difference",
            "How much higher is the infant mortality of Haiti than that of Cuba?",
            lambda d: d[d.Country == "Haiti"].iloc[0, 1] - d[d.Country == "Cuba"].iloc[0, 1],
        ),
        (
            "average",
            "mean infant mortality over all countries",
            lambda d: d["Infant mortality (per 1,000 live births)"].mean(),
        ),
        ("none", "What is the capital of Brazil?", None),
        ("none", "What share of adults in Angola can read?", None),
    ],
)
table(
    "second",
    "votes_repub",
    "Votes for the Republican candidate in presidential elections (percent)",
    "key",
    [
        ("value", "What percentage voted Republican in Ohio in 1960?", row("key", "Ohio", "X1960")),
        ("value", "Texas 1928", row("key", "Texas", "X1928")),
        ("value", "How did the Republicans do in Utah in 1972?", row("key", "Utah", "X1972")),
        ("value", "republican share of the vote, New York, 1900", row("key", "New York", "X1900")),
        ("max", "Which state was most Republican in 1936?", most("X1936")),
        ("max", "Where did the Republican candidate get the highest share in 1972?", most("X1972")),
        ("min", "Which state gave the fewest Republican votes in 1964?", least("X1964")),
        ("filter", "In which states did Republicans get more than 70 percent in 1956?", lambda d: d[d.X1956 > 70]),
        ("count", "How many states voted over 60% Republican in 1952?", lambda d: (d.X1952 > 60).sum()),
        ("compare", "Was Maine or Vermont more Republican in 1920?", larger("key", "Maine", "Vermont", "X1920")),
        ("average", "average Republican percentage over the states in 1968", lambda d: d.X1968.mean()),
        ("none", "What percentage voted Republican in Ohio in 2008?", None),
        ("none", "Who won the election of 1912?", None),
    ],
)
table(
    "second",
    "us_cereal",
    "UScereal",
    "key",
    [
        ("value", "How many calories are in Froot Loops?", row("key", "Froot Loops", "calories")),
        ("value", "salt (sodium) content of Corn Flakes", row("key", "Corn Flakes", "sodium")),
        ("value", "On which shelf is Trix?", row("key", "Trix", "shelf")),
        ("value", "How much sugar does Special K have?", row("key", "Special K", "sugars")),
        ("max", "Which cereal has the most fat?", most("fat")),
        ("max", "cereal richest in fibre", most("fibre")),
        ("min", "Which cereal has the fewest calories?", least("calories")),
        ("filter", "Which cereals have over 20 g of sugar?", lambda d: d[d.sugars > 20]),
        ("filter", "cereals with no vitamins at all (none)", lambda d: d[d.vitamins == "none"]),
        ("count", "How many cereals stand on shelf 2?", lambda d: (d.shelf == 2).sum()),
        ("compare", "Which has more protein, Cheerios or Kix?", larger("key", "Cheerios", "Kix", "protein")),
        ("average", "average number of calories", lambda d: d.calories.mean()),
        ("none", "What does a box of Trix cost?", None),
        ("none", "Which cereal sold best last year?", None),
    ],
)
table(
    "second",
    "heptathlon",
    "Olympic heptathlon Seoul 1988",
    "key",
    [
        ("value", "How far did Behmer (GDR) throw the javelin?", row("key", "Behmer (GDR)", "javelin")),
        ("value", "total score of Braun (FRG)", row("key", "Braun (FRG)", "score")),
        ("value", "How high did Wijnsma jump?", row("key", "Wijnsma (HOL)", "highjump")),
        ("value", "200 m time of Joyner-Kersee", row("key", "Joyner-Kersee (USA)", "run200m")),
        ("max", "Who won, that is, had the highest score?", most("score")),
        ("max", "Which athlete had the longest long jump?", most("longjump")),
        ("min", "Who was quickest over 800 m?", least("run800m")),
        ("filter", "Who scored more than 6,500 points?", lambda d: d[d.score > 6500]),
        ("filter", "athletes with a javelin throw over 47 m", lambda d: d[d.javelin > 47]),
        ("count", "How many athletes scored under 5,600?", lambda d: (d.score < 5600).sum()),
        (
            "compare",
            "Who put the shot farther, John (GDR) or Greiner (USA)?",
            larger("key", "John (GDR)", "Greiner (USA)", "shot"),
        ),
        ("average", "mean final score", lambda d: d.score.mean()),
        ("none", "How old was Joyner-Kersee in Seoul?", None),
        ("none", "Who trained Behmer (GDR)?", None),
    ],
)
table(
    "second",
    "grunfeld",
    "grunfeld",
    "firm",
    [
        (
            "value",
            "How much did General Motors invest in 1940?",
            lambda d: d[(d.firm == "General Motors") & (d.year == 1940)].invest.iloc[0],
        ),
        ("value", "What was IBM's capital in 1954?", lambda d: d[(d.firm == "IBM") & (d.year == 1954)].capital.iloc[0]),
        (
            "value",
            "market value of Chrysler 1935",
            lambda d: d[(d.firm == "Chrysler") & (d.year == 1935)].value.iloc[0],
        ),
        (
            "value",
            "Investment of Goodyear in 1950",
            lambda d: d[(d.firm == "Goodyear") & (d.year == 1950)].invest.iloc[0],
        ),
        ("max", "Which firm invested the most in 1953?", lambda d: d[d.invest == d[d.year == 1953].invest.max()]),
        (
            "max",
            "Which company had the largest capital stock in 1945?",
            lambda d: d[d.capital == d[d.year == 1945].capital.max()],
        ),
        (
            "count",
            "How many firms invested more than 100 in 1941?",
            lambda d: ((d.year == 1941) & (d.invest > 100)).sum(),
        ),
        ("filter", "Which firms were valued at over 1500 in 1948?", lambda d: d[(d.year == 1948) & (d.value > 1500)]),
        (
            "max",
            "In which year did US Steel invest the most?",
            lambda d: [str(d.loc[d[d.firm == "US Steel"].invest.idxmax(), "year"])],
        ),
        ("sum", "total investment of Union Oil over the years", lambda d: d[d.firm == "Union Oil"].invest.sum()),
        ("average", "average value of Westinghouse", lambda d: d[d.firm == "Westinghouse"].value.mean()),
        ("none", "How many employees did IBM have in 1954?", None),
        ("none", "Who founded Goodyear?", None),
    ],
)
table(
    "second",
    "animals",
    "Average brain and body weights for 28 animals",
    "Animal",
    [
        ("value", "How heavy is a donkey?", row("Animal", "Donkey", "Body weight (kg)")),
        ("value", "brain mass of the human", row("Animal", "Human", "Brain weight (g)")),
        (
            "value",
            "What does the brain of a golden hamster weigh?",
            row("Animal", "Golden hamster", "Brain weight (g)"),
        ),
        ("value", "weight of Triceratops body", row("Animal", "Triceratops", "Body weight (kg)")),
        ("max", "Which animal has the biggest brain?", most("Brain weight (g)")),
        ("max", "heaviest animal", most("Body weight (kg)")),
        ("min", "Which animal's brain is the smallest?", least("Brain weight (g)")),
        ("filter", "Which animals weigh more than 5000 kg?", lambda d: d[d["Body weight (kg)"] > 5000]),
        ("filter", "animals with a brain of less than 3 g", lambda d: d[d["Brain weight (g)"] < 3]),
        ("count", "How many animals have a body weight under 1 kg?", lambda d: (d["Body weight (kg)"] < 1).sum()),
        (
            "compare",
            "Which brain is heavier, the horse's or the cow's?",
            larger("Animal", "Horse", "Cow", "Brain weight (g)"),
        ),
        ("difference", "How much heavier is the body of a pig than that of a sheep?", lambda d: 192 - 55.5),
        ("none", "How fast can a jaguar run?", None),
        ("none", "What does a kangaroo eat?", None),
    ],
)
table(
    "second",
    "journals",
    "Journals",
    "title",
    [
        ("value", "Who publishes Econometrica?", row("title", "Econometrica", "pub")),
        (
            "value",
            "How much does the Journal of Finance cost a library?",
            row("title", "Journal of Finance", "libprice"),
        ),
        ("value", "When was Land Economics founded (date1)?", row("title", "Land Economics", "date1")),
        (
            "value",
            "How many pages does the American Economic Review have?",
            row("title", "American Economic Review", "pages"),
        ),
        ("max", "Which journal gets the most citations in total?", most("citestot")),
        ("max", "most expensive journal for libraries (price)", most("libprice")),
        ("min", "Which journal has the fewest pages?", least("pages")),
        ("count", "How many journals does Kluwer publish?", lambda d: (d["pub"] == "Kluwer").sum()),
        ("filter", "journals in the field of demography", lambda d: d[d.field == "Demography"]),
        (
            "filter",
            "Which journals in econometrics have more than 600 pages?",
            lambda d: d[(d.field == "Econometrics") & (d.pages > 600)],
        ),
        (
            "truth",
            "Is the European Economic Review published by a society?",
            lambda d: d[d.title == "European Economic Review"].society.iloc[0] == "yes",
        ),
        (
            "compare",
            "Which is cheaper by library price, Economica or Research Policy?",
            larger("title", "Economica", "Research Policy", "libprice", most=False),
        ),
        ("none", "Who is the editor of Econometrica?", None),
        ("none", "What is the acceptance rate of Land Economics?", None),
    ],
)
table(
    "second",
    "nightingale",
    "Deaths in the Crimean War from various causes",
    "Date",
    [
        ("value", "How many soldiers died of disease on 1855-01-01?", row("Date", "1855-01-01", "Disease")),
        ("value", "deaths from wounds in November 1854", row("Date", "1854-11-01", "Wounds")),
        ("value", "How large was the army in September 1855?", row("Date", "1855-09-01", "Army")),
        ("max", "In which month did disease kill the most men?", most("Disease")),
        ("max", "When were there most deaths from wounds?", most("Wounds")),
        ("min", "When was the army smallest?", least("Army")),
        ("filter", "Which dates had more than 1,500 deaths from disease?", lambda d: d[d.Disease > 1500]),
        ("count", "In how many months did more than 200 men die of wounds?", lambda d: (d.Wounds > 200).sum()),
        ("count", "How many months of 1854 are covered?", lambda d: (d.Year == 1854).sum()),
        ("sum", "How many died of wounds altogether in 1854?", lambda d: d[d.Year == 1854].Wounds.sum()),
        ("average", "average size of the army", lambda d: d.Army.mean()),
        ("none", "How many Russian soldiers died in January 1855?", None),
        ("none", "Which general commanded the army in 1855?", None),
    ],
)
table(
    "second",
    "world_phones",
    "The world's telephones (thousands)",
    "key",
    [
        ("value", "How many phones were there in Europe in 1956?", lambda d: d[d.key == 1956].Europe.iloc[0]),
        ("value", "Africa's telephones in 1961", lambda d: d[d.key == 1961].Africa.iloc[0]),
        ("value", "Number of telephones in Asia, 1951", lambda d: d[d.key == 1951].Asia.iloc[0]),
        ("value", "How many thousand telephones did Oceania have in 1958?", lambda d: d[d.key == 1958].Oceania.iloc[0]),
        ("max", "In what year did Africa have the most phones?", lambda d: ["1961"]),
        ("min", "Which year saw the fewest telephones in Asia?", lambda d: ["1951"]),
        (
            "filter",
            "In which years did Europe have more than 36,000 thousand telephones?",
            lambda d: d[d.Europe > 36000],
        ),
        ("count", "For how many years is there data?", lambda d: len(d)),
        (
            "count",
            "In how many years were there fewer than 2,500 phones (thousands) in Oceania?",
            lambda d: (d.Oceania < 2500).sum(),
        ),
        ("difference", "How many more telephones did Asia have in 1961 than in 1960?", lambda d: 9053 - 8220),
        ("average", "average number of telephones in Europe", lambda d: d.Europe.mean()),
        ("none", "How many phones were there in Europe in 1990?", None),
        ("none", "Which company ran the telephones in Africa?", None),
    ],
)

if __name__ == "__main__":
    with (HERE / "questions.jsonl").open("w", encoding="utf-8") as out:
        for line in QUESTIONS:
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(len(QUESTIONS), "questions over", len(TITLES), "tables")

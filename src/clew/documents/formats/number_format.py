"""Numbers of a spreadsheet as it shows them; dates in the one form that needs no guessing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

BUILT_IN = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 14: "yyyy-mm-dd"}
BUILT_IN |= {15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss"}
BUILT_IN |= {22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 48: "0.0E+0"}
BUILT_IN |= {45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss"}
LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h|m|s)[^\]]*\]', re.IGNORECASE)
DIGITS = re.compile(r"[#0?][#0?,.]*")
EPOCH = datetime.datetime(1899, 12, 30)
EPOCH_1904 = datetime.datetime(1904, 1, 1)

Shown = Callable[[float], str]


def shown_by(code: str, *, from_1904: bool = False) -> Shown:
    """How a format code shows numbers."""
    first = code.split(";")[0]
    plain = QUOTED.sub("", first).lower()
    if not plain.strip() or "general" in plain or "@" in plain:
        return general
    if re.search(r"[ymdhs]", plain):
        return _dates(plain, EPOCH_1904 if from_1904 else EPOCH)
    if "e+" in plain or "e-" in plain or "/" in plain or not DIGITS.search(plain):
        return general
    return _numbers(first, plain)


def general(value: float) -> str:
    """The shortest way to write a number that a sheet shows in full."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def _numbers(code: str, plain: str) -> Shown:
    found = DIGITS.search(QUOTED.sub(lambda quoted: "\0" * len(quoted.group()), code))
    assert found is not None
    pattern = found.group()
    whole, _, fraction = pattern.partition(".")
    decimals = len(re.findall(r"[0?#]", fraction))
    optional = len(fraction) - len(fraction.rstrip("#"))
    thousands = "," if re.search(r"[0#?],[0#?]", whole) else ""
    scale = 1000 ** (len(pattern) - len(pattern.rstrip(",")))
    before, after = _literals(code[: found.start()]), _literals(code[found.end() :])
    percent = "%" in plain
    after = after.replace("%", "")

    def shown(value: float) -> str:
        text = f"{abs(value) / scale * (100 if percent else 1):{thousands}.{decimals}f}"
        if optional and "." in text:
            cut = text.rstrip("0")
            text = (cut + "0" * max(0, decimals - optional - len(cut.partition(".")[2]))).rstrip(".")
        minus = "-" if value < 0 and re.search(r"[1-9]", text) else ""
        return f"{minus}{before}{text}{'%' if percent else ''}{after}".strip()

    return shown


def _literals(code: str) -> str:
    """What a format writes beside the digits, such as a currency or a unit."""
    kept = "".join(quoted or escaped or currency for quoted, escaped, currency in LITERAL.findall(code))
    outside = re.sub(r"_.|\*.|\[[^\]]*\]", "", LITERAL.sub("", code))
    return "".join(mark for mark in outside if mark in "$€£¥%") + kept.strip("()")


def _dates(plain: str, epoch: datetime.datetime) -> Shown:
    has_year, has_day = "y" in plain, "d" in plain
    has_time = bool(re.search(r"[hs]", plain))
    has_month = "m" in (re.sub(r"h+:m+|m+:s+|\[m+\]", "", plain) if has_time else plain)

    def shown(value: float) -> str:
        try:
            moment = epoch + datetime.timedelta(seconds=round(value * 86400))
        except OverflowError:
            return general(value)
        clock = f"{moment:%H:%M:%S}" if moment.second or "s" in plain else f"{moment:%H:%M}"
        if "[" in plain:
            hours, seconds = divmod(round(value * 86400), 3600)
            return f"{hours}:{seconds // 60:02}:{seconds % 60:02}"
        if not (has_year or has_day or has_month):
            return clock
        if has_day and has_month and not has_year:
            day = f"{moment.day} {moment:%b}"
        elif has_day:
            day = f"{moment:%Y-%m-%d}"
        else:
            day = f"{moment:%b}" * has_month + " " * (has_month and has_year) + f"{moment:%Y}" * has_year
        return f"{day} {clock}" if has_time and (moment.hour or moment.minute or moment.second) else day

    return shown

"""The domains: shop, library, clinic, school, hotel and airline."""

from __future__ import annotations

from tetrathlon.envs.tools.sql.table import Column, Domain, Table

_GROUPS, _ITEMS, _ACTORS, _EVENTS, _CHILDREN = (6, 8), (20, 36), (30, 60), (120, 200), (60, 100)
_YEARS = (2021, 2023)
"""Of what happens."""
_CITIES = "Oslo Lisbon Ghent Turin Leeds Malmo"
_COUNTRIES = "Norway Kenya Peru Japan Canada Greece"
_KEY = Column("id", "key", "id")


def _ref(table: str) -> Column:
    return Column(f"{table}_id", "ref", table, (table,))


def _name(column: str, first: str, last: str = "") -> Column:
    """Return a column of names: all of ``first``, or one of each."""
    return Column(column, "name", column, (tuple(first.split()), tuple(last.split())))


def _person() -> Column:
    return _name("name", _FIRST_NAMES, _LAST_NAMES)


def _kind(name: str, values: str, said: str = "") -> Column:
    return Column(name, "kind", said or name, tuple(values.split()))


def _number(name: str, low: int, high: int, said: str = "") -> Column:
    return Column(name, "number", said or name, (low, high, 0))


def _money(name: str, low: int, high: int, said: str = "") -> Column:
    return Column(name, "number", said or name, (low, high, 2))


def _day(name: str, said: str, years: tuple[int, int] = _YEARS) -> Column:
    return Column(name, "day", said, years)


def _end(name: str, said: str, days: int, missing: float) -> Column:
    """Return a column of days, at most ``days`` after the day of the same row."""
    return Column(name, "end", said, (days,), missing)


def _gap(name: str, form: str, said: str = "", missing: float = 0.3) -> Column:
    """Return a column of codes; ``{}`` in ``form`` stands for a number."""
    return Column(name, "gap", said or name, (form, 1_000, 9_999), missing)


def _rating(name: str, said: str = "", most: int = 5) -> Column:
    return Column(name, "gap", said or name, ("", 1, most), 0.35)


_FIRST_NAMES = (
    "Ada Amir Anna Ben Carla Chen Clara Dario Dina Elif Emil Farah Felix Greta Hugo Ines Ivan Jonas Kaya Lena Leo Lina "
    "Malik Mara Milan Nadia Nils Nora Omar Paula Petra Rania Remi Rosa Samir Selma Tara Theo Vera Yusuf"
)
_LAST_NAMES = (
    "Adler Bauer Bekele Berg Castro Costa Dahl Diaz Engel Farkas Fischer Garcia Haas Holm Ito Jansen Kim Kovac Kraus "
    "Lang Lindt Lopez Marin Meyer Moreau Nagy Novak Okoye Olsen Park Petrov Ricci Rossi Sato Silva Tanaka Urban Vogel "
    "Weber Zeman"
)

SHOP = Domain(
    "shop",
    Table("category", "category", "categories", _GROUPS, (
        _KEY, _name("name", "Garden Kitchen Office Sports Toys Lighting Travel Music"), _kind("aisle", "A B C"))),
    Table("product", "product", "products", _ITEMS, (
        _KEY, _name("name", "Oak Steel Amber Linen Copper Ivory Slate Coral", "Lamp Bowl Chair Clock Kettle Tray"),
        _ref("category"), _kind("brand", "Norda Velio Kestrel Tamaro"), _money("price", 5, 400),
        _number("stock", 0, 500, "stock"))),
    Table("customer", "customer", "customers", _ACTORS, (
        _KEY, _person(), _kind("city", _CITIES), _day("joined_on", "joining date", (2016, 2020)),
        _gap("email", "user{}@mail.example", "email address"))),
    Table("sale", "sale", "sales", _EVENTS, (
        _KEY, _ref("customer"), _ref("product"), _day("sold_on", "sale date"),
        _end("delivered_on", "delivery date", 20, 0.2), _number("quantity", 1, 30), _money("amount", 5, 900),
        _kind("channel", "web store phone"), _rating("rating"))),
    Table("refund", "refund", "refunds", _CHILDREN, (
        _KEY, _ref("sale"), _day("refunded_on", "refund date"), _money("amount", 2, 200),
        _kind("reason", "damaged late unwanted"))),
    "to", "of",
)  # fmt: skip
LIBRARY = Domain(
    "library",
    Table("author", "author", "authors", _GROUPS, (_KEY, _person(), _kind("country", _COUNTRIES))),
    Table("book", "book", "books", _ITEMS, (
        _KEY, _name("title", "Silent Distant Burning Hollow Northern Hidden Broken Golden",
                    "Harbour River Garden Winter Mirror Orchard Tower"),
        _ref("author"), _kind("format", "hardback paperback audio large-print"), _number("pages", 90, 900),
        _money("price", 4, 60))),
    Table("member", "member", "members", _ACTORS, (
        _KEY, _person(), _kind("district", "North South East West Harbour Centre"),
        _day("registered_on", "registration date", (2010, 2020)), _gap("phone", "555-{}", "phone number"))),
    Table("loan", "loan", "loans", _EVENTS, (
        _KEY, _ref("member"), _ref("book"), _day("lent_on", "lending date"),
        _end("returned_on", "return date", 70, 0.25), _number("days_allowed", 7, 56, "number of days allowed"),
        _money("deposit", 2, 40), _kind("desk", "main annex mobile"), _rating("rating"))),
    Table("fine", "fine", "fines", _CHILDREN, (
        _KEY, _ref("loan"), _day("charged_on", "charging date"), _money("amount", 1, 30),
        _kind("reason", "overdue damaged lost"))),
    "to", "of",
)  # fmt: skip
CLINIC = Domain(
    "clinic",
    Table("department", "department", "departments", _GROUPS, (
        _KEY, _name("name", "Cardiology Surgery Oncology Neurology Radiology Pediatrics Urology Dermatology"),
        _kind("building", "A B C"))),
    Table("doctor", "doctor", "doctors", _ITEMS, (
        _KEY, _person(), _ref("department"), _kind("grade", "junior senior consultant"),
        _number("salary", 2_800, 9_500), _number("experience", 12, 420, "experience in months"))),
    Table("patient", "patient", "patients", _ACTORS, (
        _KEY, _person(), _kind("insurer", "Alba Medica Unio Sana Civis"), _day("born_on", "birth date", (1940, 2015)),
        _gap("phone", "555-{}", "phone number"))),
    Table("visit", "visit", "visits", _EVENTS, (
        _KEY, _ref("patient"), _ref("doctor"), _day("visited_on", "visit date"),
        _end("closed_on", "closing date", 40, 0.2), _number("minutes", 5, 90, "number of minutes"),
        _money("cost", 20, 700), _kind("reason", "checkup injury fever referral"),
        _rating("pain_score", "pain score", 10))),
    Table("prescription", "prescription", "prescriptions", _CHILDREN, (
        _KEY, _ref("visit"), _day("issued_on", "issue date"), _money("price", 3, 150),
        _kind("form", "tablet syrup cream"))),
    "of", "to",
)  # fmt: skip
SCHOOL = Domain(
    "school",
    Table("teacher", "teacher", "teachers", _GROUPS, (_KEY, _person(), _kind("wing", "north south"))),
    Table("course", "course", "courses", _ITEMS, (
        _KEY, _name("title", "Applied Modern Early Practical Advanced Basic Urban Global",
                    "Algebra History Biology Chemistry Drawing Economics Rhetoric"),
        _ref("teacher"), _kind("language", "English French Spanish"), _money("fee", 40, 900),
        _number("hours", 8, 160, "number of hours"))),
    Table("student", "student", "students", _ACTORS, (
        _KEY, _person(), _kind("campus", _CITIES), _day("born_on", "birth date", (1985, 2006)),
        _gap("email", "s{}@school.example", "email address"))),
    Table("enrolment", "enrolment", "enrolments", _EVENTS, (
        _KEY, _ref("student"), _ref("course"), _day("enrolled_on", "enrolment date"),
        _end("completed_on", "completion date", 200, 0.3), _number("attended", 1, 120, "number of hours attended"),
        _money("paid", 20, 900, "amount paid"), _kind("mode", "online evening daytime"), _rating("grade", most=20))),
    Table("exam", "exam", "exams", _CHILDREN, (
        _KEY, _ref("enrolment"), _day("taken_on", "exam date"), _number("points", 5, 100, "number of points"),
        _kind("room", "R1 R2 R3 R4"))),
    "of", "in",
)  # fmt: skip
HOTEL = Domain(
    "hotel group",
    Table("hotel", "hotel", "hotels", _GROUPS, (
        _KEY, _name("name", "Astoria Bellevue Continental Dunes Excelsior Fjordview Grandview Highgate Lakeside"),
        _kind("town", _CITIES))),
    Table("room", "room", "rooms", _ITEMS, (
        _KEY, _name("label", "Amber Birch Cedar Delta Ember Fern Garnet Hazel", "One Two Three Four Five Six Seven"),
        _ref("hotel"), _kind("view", "sea garden street yard"), _money("rate", 50, 480, "nightly rate"),
        _number("area", 12, 95))),
    Table("guest", "guest", "guests", _ACTORS, (
        _KEY, _person(), _kind("country", _COUNTRIES), _day("born_on", "birth date", (1945, 2004)),
        _gap("loyalty_card", "LC-{}", "loyalty card"))),
    Table("booking", "booking", "bookings", _EVENTS, (
        _KEY, _ref("guest"), _ref("room"), _day("booked_on", "booking date"),
        _end("paid_on", "payment date", 60, 0.2), _number("nights", 1, 21, "number of nights"),
        _money("price", 50, 2_000), _kind("source", "agency direct portal"), _rating("rating"))),
    Table("extra", "extra", "extras", _CHILDREN, (
        _KEY, _ref("booking"), _day("ordered_on", "order date"), _money("price", 3, 180),
        _kind("service", "spa parking breakfast"))),
    "by", "for",
)  # fmt: skip
AIRLINE = Domain(
    "travel agency",
    Table("airline", "airline", "airlines", _GROUPS, (
        _KEY, _name("name", "Aerolux Borealis Condora Deltawing Eastjet Falconair Gullwing Helios Jetstra"),
        _kind("country", _COUNTRIES))),
    Table("flight", "flight", "flights", _ITEMS, (
        _KEY, _name("label", "Oslo Turin Leeds Ghent Porto Malaga Zagreb Athens", "Express Shuttle Night Early Direct"),
        _ref("airline"), _kind("aircraft", "jet turboprop airbus"), _number("distance", 180, 4_200),
        _number("seats", 40, 320, "number of seats"))),
    Table("passenger", "passenger", "passengers", _ACTORS, (
        _KEY, _person(), _kind("nationality", "Norwegian Kenyan Peruvian Japanese Canadian Greek"),
        _day("born_on", "birth date", (1945, 2010)), _gap("passport", "P{}", "passport number"))),
    Table("ticket", "ticket", "tickets", _EVENTS, (
        _KEY, _ref("passenger"), _ref("flight"), _day("bought_on", "purchase date"),
        _end("used_on", "travel date", 150, 0.25), _number("miles", 50, 3_000, "number of miles"),
        _money("price", 30, 1_200), _kind("class", "economy premium business"), _rating("rating"))),
    Table("bag", "bag", "bags", _CHILDREN, (
        _KEY, _ref("ticket"), _day("checked_on", "check-in date"), _money("fee", 5, 120),
        _kind("size", "small medium large"))),
    "of", "for",
)  # fmt: skip
DOMAINS = (SHOP, LIBRARY, CLINIC, SCHOOL, HOTEL, AIRLINE)
OWNERS = tuple(_LAST_NAMES.split())
"""After whom a database is named."""

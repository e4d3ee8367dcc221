"""Draws from a generator, and names of invented people, places and things."""

from __future__ import annotations

from tetrathlon.envs.language.chance import Chance

_FIRST = """
Ada Amir Anna Bela Bruno Carla Chen Dora Edgar Elif Emil Fatma Finn Gita Hana Hugo Ida Igor Jan Jun Kai Lena Lars Mara
Milo Nadia Nils Olga Omar Petra Quinn Rosa Ravi Sara Sven Tara Timo Uma Vera Wim Yuki Zoe
"""
_LAST = """
Abel Adeyemi Bauer Berg Castro Cohen Dahl Diaz Eder Evans Farkas Fischer Garcia Haddad Hansen Ito Ivanov Jansen Keller
Kim Kowalski Lange Lopez Mehta Moreau Nagy Novak Okafor Olsen Patel Peters Quist Ricci Rossi Sato Silva Tanaka Torres
Ueda Varga Weber Wolff Yilmaz Zeman
"""
_STREETS = """
Acorn Alder Bakers Birch Bridge Canal Castle Cedar Chapel Church Clover Dock Elm Falcon Ferry Forge Garden Harbour Hazel
Heron High Hill King Lake Linden Maple Market Meadow Mill Moor Oak Orchard Park Pine Quarry River Rose School Spring
Station Temple Tower Valley Willow
"""
_CITIES = "Alford Bramley Carston Denby Elmsworth Farley Glenby Harwick Ilston Kelford Lorne Marby Norwold Oakham Penby"
_MAKERS = "Alto Bellis Corvo Dunlin Estrel Fjora Galan Hestia Iduna Kelpin Lumo Marlo Nordic Orla Pavo Quill Rhea Tarn"
FIRST, LAST, STREETS, CITIES, MAKERS = (tuple(some.split()) for some in (_FIRST, _LAST, _STREETS, _CITIES, _MAKERS))
THINGS: dict[str, tuple[str, ...]] = {
    "clothing": ("jacket", "shirt", "scarf", "coat", "cap"),
    "shoes": ("boots", "sandals", "slippers", "trainers"),
    "underwear": ("socks", "vest", "tights"),
    "kitchen": ("kettle", "pan", "bowl", "jug"),
    "lighting": ("lamp", "lantern", "torch"),
    "electronics": ("speaker", "clock", "radio", "headphones"),
    "cosmetics": ("soap", "balm", "perfume"),
    "travel": ("suitcase", "rucksack", "bottle"),
}
"""Category -> what is sold in it."""
COLOURS = ("black", "white", "red", "blue", "green", "yellow", "grey", "brown")
SIZES = ("small", "medium", "large")


class Draw(Chance):
    """Random choices, and addresses."""

    def address(self) -> dict[str, str]:
        """Draw an address."""
        street = f"{self.between(1, 180)} {self.pick(STREETS)} {self.pick(('Street', 'Lane', 'Road'))}"
        return {"street": street, "city": self.pick(CITIES), "postal_code": str(self.between(10_000, 99_999))}

"""Languages: honest texts in each, and texts that are written to pass for one."""

from __future__ import annotations

import pytest

from tetrathlon.envs.text.instructions.wording import InLanguage
from tetrathlon.envs.text.languages import is_in

RIGHTS = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience "
    "and should act towards one another in a spirit of brotherhood.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
    "und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos. Dotados como están de razón y "
    "conciencia, deben comportarse fraternalmente los unos con los otros.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
    "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand en "
    "geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
    "должны поступать в отношении друг друга в духе братства.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
    "повинні діяти у відношенні один до одного в дусі братерства.",
    "ar": "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم "
    "أن يعامل بعضهم بعضاً بروح الإخاء.",
    "fa": "تمام افراد بشر آزاد به دنیا می\u200cآیند و از لحاظ حیثیت و حقوق با هم برابرند. "
    "همه دارای عقل و وجدان هستند و باید نسبت به یکدیگر با روح برادری رفتار کنند.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन "
    "प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
}
EN, DE = RIGHTS["en"], RIGHTS["de"]
BOLD = str.maketrans({chr(ord("a") + n): chr(0x1D41A + n) for n in range(26)})
ARMENIAN = "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։"
GEORGIAN = "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით."


@pytest.mark.parametrize("code", RIGHTS)
def test_an_honest_text_is_in_its_language_alone(code: str) -> None:
    text = RIGHTS[code]
    assert [other for other in RIGHTS if is_in(text, other)] == [code]
    assert is_in(text * 200, code) and is_in(text.replace(" ", "\n"), code)


@pytest.mark.parametrize(("one", "other"), [("es", "pt"), ("uk", "ru"), ("ar", "fa"), ("ja", "zh"), ("de", "nl")])
def test_a_text_in_two_languages_is_in_neither(one: str, other: str) -> None:
    first, second = (
        RIGHTS[code].replace("。", "。 ").split(". " if "." in RIGHTS[code] else " ")[0] for code in (one, other)
    )
    for text in (f"{first}. {second}.", f"{second}.\n\n{first}.", f"{first}. {second}. " * 100):
        assert is_in(text, one) is False and is_in(text, other) is False
    assert is_in(f"{RIGHTS[one]} " * 5 + second, one)  # a word in another language is no other language


@pytest.mark.parametrize(
    "letters", [EN.lower().translate(BOLD), ARMENIAN * 2, GEORGIAN * 2, "ʇxǝʇ ɹǝɥʇouɐ sᴉ sᴉɥʇ " * 5]
)
def test_letters_of_other_scripts_are_wrong_ones(letters: str) -> None:
    assert is_in(letters, "de") is False
    assert is_in(f"{DE}\n{letters}", "de") is False
    assert is_in(f"Regen {letters}", "de") is False


def test_mathematical_letters_are_letters() -> None:
    assert is_in(EN.lower().translate(BOLD), "en")


@pytest.mark.parametrize(
    "hidden",
    [
        " ".join(f"`{word}`" for word in EN.split()),
        f"```\n{EN}\n```",
        f"```\n{EN}",
        f"~~~ {EN} ~~~",
        f'"{EN}":',
        "https://" + EN.replace(" ", "/"),
        f'{{"{EN}": "kurz"}}',
    ],
)
def test_what_is_cut_out_is_judged_where_it_is_more_than_a_fifth(hidden: str) -> None:
    assert InLanguage("de").check(DE)
    assert not InLanguage("de").check(f"{DE}\n{hidden}")
    assert not InLanguage("de").check(hidden)


def test_a_little_code_is_no_other_language() -> None:
    assert InLanguage("de").check(f"{DE}\nMan schreibt dazu `print(result)` und öffnet https://example.org/start.")
    assert is_in(f'{{"explanation": "{DE}"}}', "de")

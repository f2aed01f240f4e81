"""One look per policy."""

from solid_bandits.report import palette


def test_ten_policies_look_different():
    looks = list(palette.looks(map(str, range(10))).values())
    assert len({(look.colour, look.dash) for look in looks}) == 10
    assert len({(look.colour, str(look.linestyle)) for look in looks}) == 10
    assert all(look.dash != "dash" for look in looks)

"""The one environment of all templates: HTML is escaped, Markdown is not, and what is missing is an error."""

import pytest
from jinja2 import DictLoader, UndefinedError

from solid_bandits.report.templates import environment, plain


@pytest.fixture
def made():
    """The environment, with templates of the test."""
    texts = {"page.html": "{{ label }}|{{ label | tojson }}", "text.md": "{{ label }}"}
    return environment("solid_bandits.report").overlay(loader=DictLoader(texts))


def test_html_is_escaped_and_markdown_is_not(made):
    label = "<b>&'</script>"
    page, data = made.get_template("page.html").render(label=label).split("|")
    assert page == "&lt;b&gt;&amp;&#39;&lt;/script&gt;"
    assert data == r'"\u003cb\u003e\u0026\u0027\u003c/script\u003e"'
    assert made.get_template("text.md").render(label=label) == label


def test_what_is_missing_is_an_error(made):
    with pytest.raises(UndefinedError, match="'label' is undefined"):
        made.get_template("text.md").render()
    with pytest.raises(ValueError, match="not JSON compliant"):
        made.get_template("page.html").render(label=float("nan"))


def test_manifests_are_said_in_words():
    assert [plain(value) for value in ("é", 1, None, [True, "ü"])] == ["é", "1", "null", '[true, "ü"]']

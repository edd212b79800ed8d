"""Pictures of releases: they show what the release states, escape what is hostile and need no network."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato import charts
from sfumato.charts.theme import KINDS, MOST_MARKS
from sfumato.laws import SeededBits

ROOT = Path(__file__).parents[1]
HOSTILE = [
    "</script><script>alert(1)</script>",
    "a\nb\x1b[31m",
    'x" onload="y',
    '" + datum.low + "\\u0041',
    "<b>&amp;</b>",
    "é" * 500,
]
VALUES = np.linspace(20, 80, 400)


def one(**changes):
    return {"label": "mean", "value": 3.0, "low": 2.5, "high": 3.5, **changes}


def rows_of(chart):
    """The records behind a chart, whether its layers share them or not."""
    spec = chart.to_dict()
    return spec["data"]["values"] if "data" in spec else spec["layer"][0]["data"]["values"]


def marks(chart):
    kinds = []
    for layer in chart.to_dict()["layer"]:
        kinds.append(layer["mark"]["type"])
    return kinds


def title(chart):
    return chart.to_dict()["title"]


def curve(name, kind, factor=1.0):
    return [{"curve": name, "kind": kind, "x": x, "error": factor / x} for x in (0.1, 1.0, 10.0)]


# --- releases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    "release",
    [
        sf.mean(VALUES, bounds=(0, 100), epsilon=1),
        sf.count(VALUES, between=(20, 50), epsilon=1),
        sf.sum(VALUES, bounds=(0, 100), epsilon=1),
        sf.variance(VALUES, bounds=(0, 100), epsilon=1),
        sf.proportion(VALUES, between=(20, 50), epsilon=1),
        sf.median(VALUES, bounds=(0, 100), epsilon=1),
        sf.deciles(VALUES, bounds=(0, 100), epsilon=5),
        sf.histogram(VALUES, bins=20, bounds=(0, 100), epsilon=1),
        sf.histogram(["a", "b", "a"] * 30, categories=("a", "b", "c"), epsilon=1),
    ],
    ids=lambda release: f"{release.query.name}-{len(release.query.labels())}",
)
def test_a_picture_shows_the_value_and_the_interval_that_the_release_states(release, confidence):
    rows = rows_of(release.plot(confidence))
    low, high = (np.atleast_1d(end).astype(float) for end in release.interval(confidence))
    assert [row["value"] for row in rows] == np.atleast_1d(release.value).astype(float).tolist()
    assert [row["low"] for row in rows] == low.tolist()
    assert [row["high"] for row in rows] == high.tolist()
    assert f"{100 * confidence:g} %" in title(release.plot(confidence))["subtitle"][0]


def test_all_together_is_drawn_wider_and_said_so():
    release = sf.histogram(VALUES, bins=20, bounds=(0, 100), epsilon=1)
    alone, together = release.plot(), release.plot(simultaneous=True)
    assert "each by itself" in title(alone)["subtitle"][0]
    assert "all together" in title(together)["subtitle"][0]
    pairs = zip(rows_of(alone), rows_of(together), strict=True)
    assert all(wide["high"] > narrow["high"] for narrow, wide in pairs)


def test_the_kind_of_picture_follows_from_the_statistic():
    bounds = {"bounds": (0, 100), "epsilon": 1}
    assert "area" in marks(sf.deciles(VALUES, **bounds).plot())
    assert "area" not in marks(sf.median(VALUES, **bounds).plot())
    assert "rect" in marks(sf.histogram(VALUES, bins=4, **bounds).plot())
    assert "bar" in marks(sf.histogram(["a"], categories=("a", "b"), epsilon=1).plot())
    assert marks(sf.mean(VALUES, **bounds).plot())[0] == "rule"


def test_bins_lie_between_their_edges_and_quantiles_at_their_orders():
    rows = rows_of(sf.histogram(VALUES, edges=(0, 10, 50, 100), epsilon=1).plot())
    assert [(row["start"], row["end"]) for row in rows] == [(0, 10), (10, 50), (50, 100)]
    rows = rows_of(sf.quantiles(VALUES, [0.9, 0.1, 0.5], bounds=(0, 100), epsilon=50).plot())
    assert [row["order"] for row in rows] == [0.1, 0.5, 0.9]
    assert [row["value"] for row in rows] == sorted(row["value"] for row in rows)


def test_the_title_says_statistic_column_and_cost():
    data = sf.Dataset(
        {"age": VALUES}, unit="row", neighbours="substitution", schema={"age": sf.Field(bounds=(0, 100))}
    )
    session = sf.Session(data, budget=sf.PureDP(1))
    found = session.answer(sf.Mean(column="age", budget=sf.PureDP(0.5)))
    assert title(found.plot())["text"] == "mean of age, PureDP(epsilon=0.5)"
    text = sf.deciles(VALUES, bounds=(0, 100), epsilon=1).plot()
    assert title(text)["text"] == "deciles of values, PureDP(epsilon=1.0)"


def test_what_seeded_bits_drew_says_that_it_is_not_private():
    query = sf.Count(budget=sf.PureDP(1), neighbours="add-remove")
    seeded, private = (sf.Release(query, (42,), private=flag) for flag in (False, True))
    assert title(seeded.plot())["subtitle"][-1].startswith("NOT PRIVATE")
    assert not any("NOT PRIVATE" in line for line in title(private.plot())["subtitle"])
    assert SeededBits(1).private is False


def test_what_the_interval_of_quantiles_rests_on_stands_above_it():
    release = sf.median(VALUES, bounds=(0, 100), epsilon=1)
    said = " ".join(title(release.plot())["subtitle"])
    assert all(note in said for note in release.notes if "interval" in note)
    assert title(release.plot(scenario="any data"))["subtitle"][-1] == "holds on any data"
    framed = sf.median(VALUES, bounds=(0, 100), epsilon=1, interval_share="auto")
    by_name = title(framed.plot(scenario="slopes"))["subtitle"][-1]
    assert by_name == "assumed about the data: as spread as released neighbours are"
    likely = sf.accuracy.Scenario.named("uniform", low=20, high=80)
    assert title(release.plot(scenario=likely))["subtitle"][-1].endswith(likely.words)
    assert all(len(line) <= 92 for line in title(release.plot())["subtitle"])


def test_the_pictures_of_the_page_are_those_of_the_example():
    source = (ROOT / "examples" / "charts" / "pictures.py").read_text("utf-8")
    drawn = {f"{name}.svg" for name in re.findall(r'yield "([\w-]+)"', source)}
    stored = {path.name for path in (ROOT / "docs" / "pictures").iterdir() if path.suffix == ".svg"}
    assert drawn <= stored
    page = (ROOT / "docs" / "charts.md").read_text("utf-8")
    assert set(re.findall(r"pictures/([\w-]+\.svg)", page)) <= drawn


def test_a_choice_has_no_picture_and_the_refusal_says_why():
    chosen = sf.most_common(["a", "b", "a"], categories=("a", "b"), epsilon=1)
    with pytest.raises(sf.NotSupported, match="plot needs an answer that is a number"):
        chosen.plot()


def test_one_bin_and_one_category_are_drawn():
    for release in (
        sf.histogram([1.0] * 30, bins=1, bounds=(0, 2), epsilon=1),
        sf.histogram(["a"] * 30, categories=("a",), epsilon=1),
    ):
        assert len(rows_of(release.plot())) == 1


def test_no_records_and_too_many_are_refused():
    for draw in (charts.values_with_intervals, charts.ribbon, charts.bars_with_errors, charts.error_curves):
        with pytest.raises(sf.InvalidParameter, match="rows must be 1 to"):
            draw([])
    with pytest.raises(sf.InvalidParameter, match="5,001"):
        charts.bars_with_errors([one()] * (MOST_MARKS + 1))


def test_an_infinite_end_is_drawn_open_to_the_edge():
    (row,) = rows_of(charts.values_with_intervals([one(high=float("inf"))]))
    assert row["open_high"]
    assert not row["open_low"]
    assert row["low"] == 2.5
    assert row["high"] == 3.0 + 0.15 * 0.5
    json.dumps(row, allow_nan=False)


# --- curves ----------------------------------------------------------------------------------------


def test_curves_leave_out_what_has_no_place_on_a_logarithmic_axis():
    rows = [*curve("exact", "exact"), {"curve": "exact", "kind": "exact", "x": 5.0, "error": 0.0}]
    rows += [{"curve": "exact", "kind": "exact", "x": 6.0, "error": float("inf")}]
    assert [row["x"] for row in rows_of(charts.error_curves(rows))] == [0.1, 1.0, 10.0]


def test_every_curve_is_named_once_and_no_two_names_overlap():
    names = [f"curve {i}" for i in range(6)]
    rows = [row for i, name in enumerate(names) for row in curve(name, "bound", 1 + i / 1000)]
    chart = charts.error_curves(rows, height=200)
    labels = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "text")
    places = labels["data"]["values"]
    assert sorted(place["curve"] for place in places) == names
    low, high = labels["encoding"]["y"]["scale"]["domain"]
    pixels = sorted(200 * np.log(high / place["place"]) / np.log(high / low) for place in places)
    assert min(np.diff(pixels)) > 12
    assert pixels[0] > -10
    assert pixels[-1] < 210


def test_an_unknown_kind_of_curve_is_refused():
    with pytest.raises(sf.InvalidParameter, match="kind must be one of 'exact'"):
        charts.error_curves(curve("a", "guess"))


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour):
    return 1.05 / (luminance(colour) + 0.05)


def test_words_and_lines_stand_out_from_the_white_page_that_every_chart_brings():
    assert charts.error_curves(curve("a", "exact")).to_dict()["background"] == "white"
    assert all(contrast(colour) > 3.5 for colour, _ in KINDS.values())
    assert contrast("#F0E442") < 3.5, "the yellow of the same palette would not do"


def seen(colour, weights):
    """A colour as one sees it who lacks a kind of cone, by mixing red and green."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    mixed = weights * red + (1 - weights) * green
    return np.array([mixed, mixed, blue])


def test_kinds_of_curves_are_told_apart_without_red_or_green_cones_or_by_dashes():
    looks = {}
    for colour, dash in KINDS.values():
        looks[(colour, tuple(dash))] = colour
    for (first, dashes), one_colour in looks.items():
        for (second, others), other_colour in looks.items():
            if first == second:
                continue
            apart = min(np.abs(seen(one_colour, w) - seen(other_colour, w)).max() for w in (0.1, 0.6))
            assert apart > 25 or dashes != others


# --- files -----------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a chart asked for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.usefixtures("no_network")
def test_files_stand_on_their_own(tmp_path):
    chart = sf.mean(VALUES, bounds=(0, 100), epsilon=1).plot()
    svg = charts.save(chart, tmp_path / "a.svg").read_text("utf-8")
    assert svg.startswith("<svg")
    assert "mean of values" in svg
    assert "<image" not in svg
    png = charts.save(chart, tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20], "big")
    assert 2 * 350 < width < 2 * 700, "two pixels for each of a column"
    # Making a page is slow: the one that is made has a hostile name too.
    hostile = charts.values_with_intervals([one(label=HOSTILE[0])], title=HOSTILE[0])
    page = charts.save(hostile, str(tmp_path / "a.HTML")).read_text("utf-8")
    head = page.split("<script>")[0]
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)", page.split("</script>")[-1] + head)
    assert page.count("<script") == page.count("</script>") == 1
    assert "vegaEmbed" in page
    stored = json.loads(charts.save(chart, tmp_path / "a.json").read_text("utf-8"))
    assert stored == json.loads(json.dumps(chart.to_dict()))


def test_another_ending_is_refused(tmp_path):
    chart = charts.values_with_intervals([one()])
    with pytest.raises(
        sf.InvalidParameter, match=r"path must end in \.svg, \.png, \.html, \.json, got path="
    ):
        charts.save(chart, tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_words(name, tmp_path):
    release = sf.histogram(["a"] * 9, categories=("a", name), epsilon=1)
    query = sf.Mean(column=name, budget=sf.PureDP(1), bounds=(0, 1), neighbours="add-remove")
    for i, chart in enumerate((release.plot(), sf.Release(query, (5, 5), private=True).plot())):
        shown = title(chart)["text"] + "".join(row["label"] for row in rows_of(chart))
        assert shown.isprintable()
        assert len(title(chart)["text"]) < 90
        svg = charts.save(chart, tmp_path / f"{i}.svg").read_text("utf-8")
        assert "<script" not in svg
        assert "<b>" not in svg
        assert "\x1b" not in svg


def test_the_escaping_is_needed():
    import vl_convert

    spec = charts.values_with_intervals([one(label=HOSTILE[0])]).to_dict()
    assert vl_convert.vegalite_to_html(spec, bundle=False).count("<script>alert") == 1


# --- the package -----------------------------------------------------------------------------------


def test_without_altair_the_extra_is_named(monkeypatch, tmp_path):
    chart = charts.values_with_intervals([one()])
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(sf.MissingExtra, match=r"pip install \"sfumato\[charts\]\""):
        charts.save(chart, tmp_path / "a.svg")
    monkeypatch.setitem(sys.modules, "altair", None)
    release = sf.mean(VALUES, bounds=(0, 100), epsilon=1)
    for draw in (release.plot, lambda: charts.ribbon([one(order=1)]), lambda: charts.save(chart, "a.svg")):
        with pytest.raises(sf.MissingExtra, match=r"altair: pip install \"sfumato\[charts\]\""):
            draw()


def test_the_library_loads_altair_for_a_picture_only():
    code = """
import sys
import sfumato as sf
sf.accuracy.plot, sf.charts.save
sf.mean([1.0, 2.0], bounds=(0, 10), epsilon=1).to_json()
print([name for name in ("altair", "vl_convert", "jinja2") if name in sys.modules])
"""
    environment = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert done.stdout.strip() == "[]"


def test_only_the_folder_charts_imports_altair():
    sources = {path for path in (ROOT / "src").rglob("*.py") if "charts" not in path.parts}
    assert not [path for path in sources if re.search(r"import (altair|vl_convert)", path.read_text("utf-8"))]
